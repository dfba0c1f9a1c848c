import { ContainerLog } from "./container-log.ts";
import type { ContainerPlan } from "./container-plan.ts";
import { ContainerRunner } from "./container-runner.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { containerLaunchOf, type PodGround, preparePod } from "./pod-launch.ts";
import type { PodPlan } from "./pod-plan.ts";
import type { PodReport } from "./pod-report.ts";

interface Entry {
  readonly name: string;
  readonly runner: ContainerRunner;
  readonly output: ContainerLog;
}

/** The containers of one pod: started in order, stopped together. */
export class PodContainers {
  readonly #deps: PodDependencies;
  readonly #report: PodReport;
  readonly #onChange: () => void;
  /** Those that run or may be started again. */
  readonly #running = new Map<string, ContainerRunner>();
  /** When they are killed, once they are to stop; moved only to earlier. */
  #killAt: number | undefined;

  /** What becomes of the containers is told to `report`, and then `onChange` is called. */
  constructor(deps: PodDependencies, report: PodReport, onChange: () => void) {
    this.#deps = deps;
    this.#report = report;
    this.#onChange = onChange;
  }

  /**
   * Runs what prepares the pod, one after the other, then all others. Resolves when none of them runs again. Throws
   * UnsupportedPodError before any has run, UnprovenEndError when whether one has ended is not known.
   */
  async run(plan: PodPlan, ground: PodGround): Promise<void> {
    const inits = plan.initContainers.map((container) => this.#entryOf(container, plan, ground, true));
    const others = plan.containers.map((container) => this.#entryOf(container, plan, ground, false));
    await preparePod(this.#deps.kit, ground);
    for (const init of inits) {
      await this.#runOne(init);
      const { state } = this.#report.container(init.name);
      if (this.#killAt !== undefined) return;
      if (!("terminated" in state) || state.terminated.exitCode !== 0) return; // its pod Failed with it
    }
    // All of them: while one runs the pod does, whatever became of another.
    const endings = await Promise.allSettled(others.map((other) => this.#runOne(other)));
    for (const ending of endings) if (ending.status === "rejected") throw ending.reason;
  }

  /** Has them all stop by then, asking first. */
  stop(killAt: number): void {
    this.#killAt = Math.min(this.#killAt ?? killAt, killAt);
    for (const runner of this.#running.values()) runner.stop(this.#killAt);
  }

  /** Kills one, the first that runs if none is named. False where it does not run. */
  async kill(name: string | undefined): Promise<boolean> {
    const runner = name === undefined ? [...this.#running.values()][0] : this.#running.get(name);
    return (await runner?.kill()) ?? false;
  }

  #entryOf(container: ContainerPlan, plan: PodPlan, ground: PodGround, isInit: boolean): Entry {
    const { kit, record, execProbes, starts, backoff, faults, log } = this.#deps;
    const onLost = (error: unknown) => log.warn({ err: error }, "output of a container was not kept");
    const output = new ContainerLog(kit.paths.log(ground.pod.metadata.uid ?? "", container.name), onLost);
    const runner = new ContainerRunner({
      pod: ground.pod,
      plan: container,
      launch: containerLaunchOf(kit, ground, container),
      isInit,
      policy: isInit && plan.restartPolicy === "Always" ? "OnFailure" : plan.restartPolicy,
      graceMs: plan.graceMs,
      ip: ground.place.podIp,
      output,
      images: { errorOf: (pod, image) => faults.imagePullError(pod, image) ?? imageError(image, kit.agent.image) },
      execProbes,
      starts,
      backoff,
      record,
      log,
      view: () => this.#report.container(container.name),
      note: (change) => this.#report.updateContainer(container.name, change),
      set: (change) => {
        this.#report.updateContainer(container.name, change);
        this.#onChange();
      },
    });
    return { name: container.name, runner, output };
  }

  async #runOne({ name, runner, output }: Entry): Promise<void> {
    this.#running.set(name, runner);
    if (this.#killAt !== undefined) runner.stop(this.#killAt);
    try {
      await runner.run();
    } finally {
      this.#running.delete(name);
      await new Promise<void>((resolve) => {
        output.end(resolve);
      });
    }
  }
}

function imageError(image: string, known: string): string | undefined {
  return image === known ? undefined : `this node has one image, ${known}; it cannot pull "${image}"`;
}
