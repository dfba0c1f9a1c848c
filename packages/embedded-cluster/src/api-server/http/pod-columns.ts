import { isObject, listIn, stringIn, valueAt } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import { ageOf } from "./age.ts";

/** How many containers are ready and run, of how many. */
export function podReady(pod: KubeObject): string {
  const ready = statuses(pod, "containerStatuses").filter(
    (status) => valueAt(status, "ready") === true && isObject(valueAt(status, "state.running")),
  );
  return `${ready.length}/${listIn(pod.spec, "containers").length}`;
}

/** One word for people, found as kubectl's printer finds it. */
export function podStatus(pod: KubeObject): string {
  const phase = stringIn(pod.status, "phase") ?? "Unknown";
  const isOver = phase === "Succeeded" || phase === "Failed";
  if (pod.metadata.deletionTimestamp !== undefined && !isOver) return "Terminating";
  return initStatus(pod) ?? containerStatus(pod) ?? stringIn(pod.status, "reason") ?? phase;
}

/** Restarts of the containers, and how long ago the last one was. */
export function podRestarts(pod: KubeObject, now: Date): string {
  const counted = [...statuses(pod, "containerStatuses"), ...statuses(pod, "initContainerStatuses")];
  let restarts = 0;
  let last: string | undefined;
  for (const status of counted) {
    const count = valueAt(status, "restartCount");
    restarts += typeof count === "number" ? count : 0;
    const ended = valueAt(status, "lastState.terminated.finishedAt");
    if (typeof ended === "string" && (last === undefined || ended > last)) last = ended;
  }
  return restarts === 0 || last === undefined ? String(restarts) : `${restarts} (${ageOf(last, now)} ago)`;
}

/** Which init container the pod is at; undefined when they are done. */
function initStatus(pod: KubeObject): string | undefined {
  const total = listIn(pod.spec, "initContainers").length;
  for (const [index, status] of statuses(pod, "initContainerStatuses").entries()) {
    const exitCode = valueAt(status, "state.terminated.exitCode");
    if (exitCode === 0) continue;
    if (isRestartable(pod, status) && valueAt(status, "started") === true) continue;
    if (exitCode !== undefined) {
      return `Init:${stringIn(valueAt(status, "state.terminated"), "reason") ?? `ExitCode:${String(exitCode)}`}`;
    }
    const waiting = stringIn(valueAt(status, "state.waiting"), "reason") ?? "";
    return waiting !== "" && waiting !== "PodInitializing" ? `Init:${waiting}` : `Init:${index}/${total}`;
  }
  return undefined;
}

function isRestartable(pod: KubeObject, status: unknown): boolean {
  const name = stringIn(status, "name");
  const container = listIn(pod.spec, "initContainers").find((item) => stringIn(item, "name") === name);
  return stringIn(container, "restartPolicy") === "Always";
}

/** The first container that has something to say decides. */
function containerStatus(pod: KubeObject): string | undefined {
  let reason: string | undefined;
  let runs = false;
  for (const status of statuses(pod, "containerStatuses").toReversed()) {
    const waiting = stringIn(valueAt(status, "state.waiting"), "reason");
    const terminated = valueAt(status, "state.terminated");
    if (waiting !== undefined && waiting !== "") reason = waiting;
    else if (isObject(terminated)) reason = stringIn(terminated, "reason") ?? `ExitCode:${String(terminated.exitCode)}`;
    else if (valueAt(status, "ready") === true && isObject(valueAt(status, "state.running"))) runs = true;
  }
  return reason === "Completed" && runs ? "Running" : reason;
}

function statuses(pod: KubeObject, member: string): unknown[] {
  return listIn(pod.status, member);
}
