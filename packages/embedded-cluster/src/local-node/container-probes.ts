import type { ContainerPlan } from "./container-plan.ts";
import { attemptProbe, type InsidePod } from "./probe-attempt.ts";
import type { ProbePlan } from "./probe-plan.ts";
import { probe } from "./prober.ts";
import type { Slots } from "./slots.ts";

type ProbeKind = "Startup" | "Readiness" | "Liveness";

/** Where a container's probes are made. */
export interface ProbePlace {
  readonly ip: string;
  readonly inside: (command: readonly string[]) => InsidePod | undefined;
  readonly execProbes: Slots;
}

export interface ContainerProbesListener {
  /** The startup probe passed. */
  readonly onStarted: () => void;
  /** Readiness changed. */
  readonly onReady: (ready: boolean) => void;
  readonly onFailure: (kind: ProbeKind, message: string) => void;
  /** The container is to be restarted, within this time if the probe says so. Told once. */
  readonly onUnhealthy: (kind: ProbeKind, graceMs: number | undefined) => void;
}

/** Makes the probes of one run of a container until the signal aborts: startup first, then readiness and liveness. */
export async function probeContainer(
  plan: ContainerPlan,
  place: ProbePlace,
  listener: ContainerProbesListener,
  signal: AbortSignal,
): Promise<void> {
  const attempt = (probePlan: ProbePlan) => (until: AbortSignal) => {
    const once = () => attemptProbe(probePlan, place.ip, place.inside, until);
    return probePlan.action.t === "exec" ? place.execProbes.run(once) : once();
  };
  /** `onConclusive` answers whether to probe on. */
  const run = (
    kind: ProbeKind,
    probePlan: ProbePlan,
    onSuccess: () => void,
    onConclusive: () => boolean,
    end = signal,
  ) => {
    const onFailure = (message: string, conclusive: boolean) => {
      listener.onFailure(kind, message);
      return !conclusive || onConclusive();
    };
    return probe(probePlan, attempt(probePlan), { onSuccess, onFailure }, end);
  };
  const unhealthy =
    (kind: ProbeKind, { graceMs }: ProbePlan) =>
    () => {
      listener.onUnhealthy(kind, graceMs);
      return false;
    };

  if (plan.startup !== undefined) {
    const passed = new AbortController();
    const until = AbortSignal.any([signal, passed.signal]);
    await run("Startup", plan.startup, () => passed.abort(), unhealthy("Startup", plan.startup), until);
    if (!passed.signal.aborted || signal.aborted) return;
    listener.onStarted();
  }
  const running: Promise<void>[] = [];
  if (plan.readiness !== undefined) {
    let ready = false;
    const become = (now: boolean) => {
      if (now !== ready) listener.onReady(now);
      ready = now;
      return true;
    };
    const [gained, lost] = [() => void become(true), () => become(false)];
    running.push(run("Readiness", plan.readiness, gained, lost));
  }
  if (plan.liveness !== undefined)
    running.push(run("Liveness", plan.liveness, () => undefined, unhealthy("Liveness", plan.liveness)));
  await Promise.all(running);
}
