import { isRecord, type JsonRecord, recordOf, textOf } from "./json-shape.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/** What a container may use at most; undefined where nothing is said. */
export interface LimitsPlan {
  readonly memoryBytes: number | undefined;
  readonly cpus: number | undefined;
}

const factors: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A Kubernetes quantity as a number, undefined where it is none. */
export function quantityOf(value: unknown): number | undefined {
  const text = typeof value === "number" ? String(value) : textOf(value);
  const match = /^\+?(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text ?? "");
  const factor = factors[match?.[3] ?? ""];
  if (match === null || factor === undefined) return undefined;
  return Number(match[1]) * 10 ** Number(match[2] ?? 0) * factor;
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
