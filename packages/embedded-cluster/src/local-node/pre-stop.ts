import { isRecord, type JsonRecord, numberOf, recordOf, textsOf } from "./json-shape.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/** What is done in a container before it is asked to end. */
export type PreStopPlan =
  | { readonly t: "exec"; readonly command: readonly string[] }
  | { readonly t: "sleep"; readonly ms: number };

/** Reads a container's preStop, undefined where there is none. */
export function readPreStop(container: JsonRecord, name: string): PreStopPlan | undefined {
  const hook = recordOf(container.lifecycle).preStop;
  if (!isRecord(hook)) return undefined;
  if (isRecord(hook.sleep)) return { t: "sleep", ms: Math.max(0, numberOf(hook.sleep.seconds, 0)) * 1000 };
  const command = textsOf(recordOf(hook.exec).command);
  if (command.length > 0) return { t: "exec", command };
  throw new UnsupportedPodError(`container ${name}: lifecycle.preStop is neither exec nor sleep`);
}
