import { amountOf } from "../quantity.ts";
import { isRecord, type JsonRecord, recordOf } from "./json-shape.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/** What a container may use at most; undefined where nothing is said. */
export interface LimitsPlan {
  readonly memoryBytes: number | undefined;
  readonly cpus: number | undefined;
}

/** A quantity of zero or more; undefined where it is none. */
export function quantityOf(value: unknown): number | undefined {
  const amount = amountOf(value);
  return amount >= 0 ? amount : undefined;
}

/** Reads `resources.limits` of a container. */
export function readLimits(container: JsonRecord, name: string): LimitsPlan {
  const limits = recordOf(container.resources).limits;
  if (!isRecord(limits)) return { memoryBytes: undefined, cpus: undefined };
  const read = (member: string): number | undefined => {
    if (limits[member] === undefined) return undefined;
    const quantity = quantityOf(limits[member]);
    if (quantity === undefined || quantity <= 0)
      throw new UnsupportedPodError(
        `container ${name}: resources.limits.${member} ${JSON.stringify(limits[member])} is no limit`,
      );
    return quantity;
  };
  const memory = read("memory");
  return { memoryBytes: memory === undefined ? undefined : Math.floor(memory), cpus: read("cpu") };
}
