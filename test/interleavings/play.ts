import { ArmedFaults } from "./armed-faults.ts";
import { Callers } from "./callers.ts";
import { carryOutForeign, isDue, removeStray } from "./foreign.ts";
import type { Step, Theme } from "./steps.ts";
import type { Tally } from "./tally.ts";
import type { CallRecord, Verb } from "./world/calls.ts";
import type { World } from "./world/world.ts";

/** Plays one sequence. Nothing is awaited that a real caller would not wait for: calls overlap as they may. */
export class Play {
  readonly world: World;
  readonly #callers: Callers;
  readonly #tally: Tally;
  readonly #faults: ArmedFaults;
  readonly #watchStalls: { undo(): void }[] = [];
  readonly #controllerStalls: { undo(): void }[] = [];
  #nodeWorks = true;

  constructor(world: World, theme: Theme, tally: Tally) {
    this.world = world;
    this.#tally = tally;
    this.#faults = new ArmedFaults(world, tally);
    this.#callers = new Callers(world, theme.fenced, tally);
  }

  /** From here on starts go on with whatever disk stands. */
  acceptReplacedDisk(): void {
    this.#callers.acceptsReplacedDisk = true;
  }

  async step(step: Step): Promise<void> {
    const { world } = this;
    world.tell(`STEP ${JSON.stringify(step)}`);
    switch (step.t) {
      case "call":
        this.#callers.call(step);
        return;
      case "foreign":
        this.#tally.count("foreign", step.deed);
        return await carryOutForeign(world, step.deed);
      case "meanwhile":
        this.#faults.meanwhile(step.request, {
          passes: step.passes,
          isDue: () => isDue(world, step.deed),
          run: async () => {
            this.#tally.count("foreign", step.deed);
            await carryOutForeign(world, step.deed);
          },
        });
        return;
      case "api_fault":
        this.#faults.arm(step.request, step.fault, step.landsAfterMs);
        return;
      case "guest_fault":
        world.guests.fail(step.verb, step.fault);
        return;
      case "controller":
        return await this.#controller(step.does);
      case "watches":
        this.#watches(step.does);
        return;
      case "node":
        for (let taken = 0; taken < step.steps; taken += 1) await world.cluster.node.take();
        return;
      case "node_habit":
        this.#nodeWorks = step.works;
        return;
      case "restart":
        this.#tally.count("foreign", "restart of a replica");
        return world.restart(step.replica);
      case "pass":
        return await this.#pass(step.ms);
      case "clock_back":
        return world.clock.stepBack(step.ms);
      case "turns":
        for (let turn = 0; turn < step.count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        return;
    }
  }

  /** Everything is well again, and what is under way comes to its end. */
  async heal(): Promise<void> {
    const { world } = this;
    this.#faults.lift();
    world.guests.heal();
    this.#undo(this.#watchStalls);
    this.#undo(this.#controllerStalls);
    this.#nodeWorks = true;
    await removeStray(world);
    // Longer than any call's patience, and than a late create is looked for.
    for (let minute = 0; minute < 3; minute += 1) await this.#pass(60_000, 2);
  }

  /** What no request of the replicas waits for any more still happens. */
  async landLast(which: "some" | "all"): Promise<void> {
    await this.#faults.landLast(which);
    await this.#pass(30_000, 2);
  }

  /** A call that is made and waited for, when all is well. */
  async ask(verb: Verb, caller: number): Promise<CallRecord> {
    const record = this.#callers.call({
      t: "call",
      caller,
      replica: 0,
      verb,
      ignoresFence: false,
      leavesOnFailure: false,
      goesAfterMs: undefined,
    });
    for (let tries = 0; record.answer === undefined && tries < 100; tries += 1) await this.#pass(1_000);
    return record;
  }

  async #pass(ms: number, strides = ms > 5_000 ? 12 : 3): Promise<void> {
    const { cluster, clock } = this.world;
    // The node acts as time passes, in small steps so that it can be met half way.
    for (let stride = 0; stride < strides; stride += 1) {
      await clock.advance(ms / strides);
      if (this.#nodeWorks) await cluster.node.takeAll();
    }
    await cluster.settle();
  }

  async #controller(does: "stall" | "catch_up" | "restart"): Promise<void> {
    const { cluster } = this.world;
    this.#tally.count("foreign", `controller ${does}`);
    if (does === "stall") this.#controllerStalls.push(cluster.faults.stallWatches({ by: "controller" }));
    else if (does === "catch_up") this.#undo(this.#controllerStalls);
    else {
      this.#undo(this.#controllerStalls);
      await cluster.killController();
      await cluster.startController();
    }
  }

  #watches(does: "drop" | "stall" | "catch_up"): void {
    const { faults } = this.world.cluster;
    for (const by of ["replica-0", "replica-1"]) {
      if (does === "drop") faults.dropWatches({ by });
      else if (does === "stall") this.#watchStalls.push(faults.stallWatches({ by }));
    }
    if (does === "catch_up") this.#undo(this.#watchStalls);
  }

  #undo(stalls: { undo(): void }[]): void {
    for (const stall of stalls.splice(0)) stall.undo();
  }
}
