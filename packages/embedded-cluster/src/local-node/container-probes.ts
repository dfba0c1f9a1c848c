import type { PodPlan } from "./pod-plan.ts";
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
  /** The container is to be restarted. */
  readonly onUnhealthy: (kind: ProbeKind) => void;
}

/** Makes the probes of one run of a container until the signal aborts: startup first, then readiness and liveness. */
export async function probeContainer(
  plan: PodPlan,
  place: ProbePlace,
  listener: ContainerProbesListener,
  signal: AbortSignal,
): Promise<void> {
  const attempt = (probePlan: ProbePlan) => (until: AbortSignal) => {
    const once = () => attemptProbe(probePlan, place.ip, place.inside, until);
    return probePlan.action.t === "exec" ? place.execProbes.run(once) : once();
  };
  const run = (kind: ProbeKind, probePlan: ProbePlan, onSuccess: () => void, onConclusive: () => void, end = signal) =>
    probe(
      probePlan,
      attempt(probePlan),
      {
        onSuccess,
        onFailure: (message, conclusive) => {
          listener.onFailure(kind, message);
          if (conclusive) onConclusive();
        },
      },
      end,
    );

  if (plan.startup !== undefined) {
    const passed = new AbortController();
    const until = AbortSignal.any([signal, passed.signal]);
    const unhealthy = () => listener.onUnhealthy("Startup");
    await run("Startup", plan.startup, () => passed.abort(), unhealthy, until);
    if (signal.aborted) return;
    listener.onStarted();
  }
  const running: Promise<void>[] = [];
  if (plan.readiness !== undefined) {
    let ready = false;
    const become = (now: boolean) => {
      if (now !== ready) listener.onReady(now);
      ready = now;
    };
    running.push(
      run(
        "Readiness",
        plan.readiness,
        () => become(true),
        () => become(false),
      ),
    );
  }
  if (plan.liveness !== undefined) {
    const unhealthy = () => listener.onUnhealthy("Liveness");
    running.push(run("Liveness", plan.liveness, () => undefined, unhealthy));
  }
  await Promise.all(running);
}
