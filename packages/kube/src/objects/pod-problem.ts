import type { ContainerTermination } from "@holdfast/workspace";
import { at, elements, integerOf, textOf } from "./json.ts";

/** What a waiting container's reason means to a person. */
const waiting: Readonly<Record<string, string>> = {
  ErrImagePull: "image pull",
  ImagePullBackOff: "image pull",
  InvalidImageName: "image pull",
  ErrImageNeverPull: "image pull",
  ImageInspectError: "image pull",
  RegistryUnavailable: "image pull",
  CrashLoopBackOff: "crash loop",
  CreateContainerConfigError: "container",
  CreateContainerError: "container",
  RunContainerError: "container",
};

const problemMaxLength = 400;

/** Why the pod does not start, or undefined when nothing says that it will not. It explains and decides nothing. */
export function podProblem(pod: unknown): string | undefined {
  const status = at(pod, "status");
  const problem = failedPod(status) ?? unschedulable(status) ?? stuckContainer(status);
  return problem === undefined ? undefined : oneLine(problem);
}

/** How a container last ended, as "OOMKilled, exit 137 at 2026-01-01T00:00:00Z". */
export function terminationText(terminated: unknown): string | undefined {
  const reason = textOf(at(terminated, "reason"));
  const code = integerOf(at(terminated, "exitCode"));
  const finishedAt = textOf(at(terminated, "finishedAt"));
  const what = [reason, code === undefined ? undefined : `exit ${code}`]
    .filter((part) => part !== undefined)
    .join(", ");
  if (what === "") return undefined;
  return oneLine(finishedAt === undefined ? what : `${what} at ${finishedAt}`);
}

/** How a container last ended; undefined where nothing says that it did. A time that is none is not known. */
export function terminationOf(terminated: unknown): ContainerTermination | undefined {
  if (terminated === undefined) return undefined;
  const reason = textOf(at(terminated, "reason"));
  const exitCode = integerOf(at(terminated, "exitCode"));
  const finishedAt = new Date(textOf(at(terminated, "finishedAt")) ?? Number.NaN);
  return {
    reason: reason === undefined ? undefined : oneLine(reason),
    exitCode: exitCode !== undefined && Math.abs(exitCode) < 2 ** 31 ? exitCode : undefined,
    finishedAt: Number.isNaN(finishedAt.getTime()) ? undefined : finishedAt,
  };
}

function failedPod(status: unknown): string | undefined {
  const reason = textOf(at(status, "reason"));
  if (at(status, "phase") !== "Failed" || reason === undefined) return undefined;
  return reason === "Evicted" ? `evicted: ${saying(status, reason)}` : `failed: ${saying(status, reason)}`;
}

function unschedulable(status: unknown): string | undefined {
  const scheduled = elements(at(status, "conditions")).find((condition) => at(condition, "type") === "PodScheduled");
  if (at(scheduled, "status") !== "False") return undefined;
  const reason = textOf(at(scheduled, "reason")) ?? "Unschedulable";
  return reason === "Unschedulable"
    ? `unschedulable: ${saying(scheduled, reason)}`
    : `unschedulable (${reason}): ${saying(scheduled, reason)}`;
}

function stuckContainer(status: unknown): string | undefined {
  const containers = [...elements(at(status, "initContainerStatuses")), ...elements(at(status, "containerStatuses"))];
  for (const container of containers) {
    const waits = at(container, "state", "waiting");
    const reason = textOf(at(waits, "reason"));
    const kind = reason !== undefined && Object.hasOwn(waiting, reason) ? waiting[reason] : undefined;
    const ended =
      at(container, "state", "terminated") ??
      (reason === "CrashLoopBackOff" ? at(container, "lastState", "terminated") : undefined);
    if (at(ended, "reason") === "OOMKilled") return "out of memory";
    if (kind !== undefined) return `${kind}: ${saying(waits, reason ?? kind)}`;
  }
  return undefined;
}

function saying(value: unknown, otherwise: string): string {
  return textOf(at(value, "message")) ?? otherwise;
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > problemMaxLength ? `${line.slice(0, problemMaxLength)}…` : line;
}
