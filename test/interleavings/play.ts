import { holderEpochFrom, isExecutionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { executionWish, openWish, suspendWish } from "@holdfast/testkit";
import type { StartFencing, StopFencing, WorkspaceView } from "@holdfast/workspace";
import { ArmedFaults } from "./armed-faults.ts";
import { carryOutForeign, removeStray } from "./foreign.ts";
import type { CallStep, Step, Theme } from "./steps.ts";
import type { Tally } from "./tally.ts";
import { type Answer, type CallRecord, deleteVerbs, inCall, stopVerbs, type Verb } from "./world/calls.ts";
import type { Replica } from "./world/replica.ts";
import { type World, workspace } from "./world/world.ts";

const left = new Error("the caller went away");
const patienceMs = 20_000;

type Told = Omit<Extract<Answer, { readonly t: "ok" }>, "t">;

interface Caller {
  /** Learned from take-overs; callers of a fenced theme begin with one of their own. */
  epoch: number | undefined;
}

/** Plays one sequence. Nothing is awaited that a real caller would not wait for: calls overlap as they may. */
export class Play {
  readonly world: World;
  readonly callers: readonly Caller[];
  readonly #tally: Tally;
  readonly #faults: ArmedFaults;
  readonly #watchStalls: { undo(): void }[] = [];
  readonly #controllerStalls: { undo(): void }[] = [];
  /** Starts go on with whatever disk stands. */
  acceptsReplacedDisk = false;
  #nodeWorks = true;
  #executions = 0;

  constructor(world: World, theme: Theme, tally: Tally) {
    this.world = world;
    this.#tally = tally;
    this.#faults = new ArmedFaults(world, tally);
    this.callers = [undefined, theme.fenced ? 2 : undefined, theme.fenced ? 5 : undefined, undefined].map((epoch) => ({
      epoch,
    }));
  }

  async step(step: Step): Promise<void> {
    const { world } = this;
    world.tell(`STEP ${JSON.stringify(step)}`);
    switch (step.t) {
      case "call":
        this.#call(step);
        return;
      case "foreign":
        this.#tally.count("foreign", step.deed);
        return await carryOutForeign(world, step.deed);
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
    const record = this.#call({
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

  #call(step: CallStep): CallRecord {
    const { world } = this;
    const replica = world.replicas[step.replica] as Replica;
    const caller = this.callers[step.caller] as Caller;
    const ignoresFence = step.ignoresFence && [...stopVerbs, ...deleteVerbs].includes(step.verb);
    const record: CallRecord = {
      id: world.calls.length,
      caller: step.caller,
      replica: step.replica,
      verb: step.verb,
      epoch: step.verb === "take_over" || ignoresFence ? undefined : caller.epoch,
      ignoresFence,
      leavesOnFailure: step.leavesOnFailure,
      stateBefore: replica.stateOf(workspace),
      fromRevision: world.cluster.revision,
      toRevision: undefined,
      answer: undefined,
      isAbandoned: false,
      order: undefined,
      met: new Set(),
    };
    world.calls.push(record);
    world.tell(
      `CALL ${record.id} ${step.verb} caller ${step.caller} r${step.replica} epoch ${record.epoch} in ${record.stateBefore}`,
    );
    this.#tally.count(`verb ${step.verb}`, record.stateBefore);
    const gone = new AbortController();
    if (step.goesAfterMs !== undefined) world.clock.schedule(step.goesAfterMs, () => gone.abort(left));
    const end = (answer: CallRecord["answer"]): void => {
      record.toRevision = world.cluster.revision;
      record.order = world.nextOrder();
      this.#tallyMet(record);
      record.answer = answer;
      if (answer?.t === "ok" && answer.epoch !== undefined && step.verb === "take_over") {
        record.epoch = answer.epoch;
        if (!record.isAbandoned) caller.epoch = answer.epoch;
      }
      const said = answer?.t === "error" ? answer.reason : "ok";
      this.#tally.count("answer", said);
      world.tell(
        `ANSWER ${record.id} ${said} ${answer?.t === "error" ? answer.error.message : `${answer?.state} ${answer?.epoch}`}`,
      );
    };
    inCall(record, () => this.#make(replica, step, caller, gone.signal)).then(
      (told) => end({ t: "ok", ...told }),
      (error: Error) => {
        // Whatever it fails with once its caller is away, nobody hears it.
        if (gone.signal.aborted) record.isAbandoned = true;
        const isNamed = error instanceof HoldfastError;
        const reason = gone.signal.aborted ? "caller left" : isNamed ? error.reason : "DEFECT";
        end({ t: "error", reason, error });
      },
    );
    return record;
  }

  #tallyMet({ verb, stateBefore, met }: CallRecord): void {
    for (const fault of met) {
      this.#tally.count(`verb and fault: ${verb}`, fault);
      this.#tally.count(`state and fault: ${stateBefore}`, fault);
    }
  }

  async #make({ registry }: Replica, step: CallStep, caller: Caller, signal: AbortSignal): Promise<Told> {
    const own = caller.epoch === undefined ? undefined : holderEpochFrom(caller.epoch);
    const epoch: StartFencing = own === undefined ? { t: "none" } : { t: "epoch", epoch: own };
    const start: StartFencing = step.verb === "take_over" ? { t: "take_over" } : epoch;
    const stop: StopFencing = step.ignoresFence ? { t: "ignore_fence", by: "a test" } : epoch;
    const onStartFailure = step.leavesOnFailure ? "leave" : "suspend_if_woken";
    const { acceptsReplacedDisk: acceptReplacedDisk } = this;
    const starting = { fencing: start, onStartFailure, acceptReplacedDisk, readyTimeoutMs: patienceMs } as const;
    const stopping = { ...suspendWish, fencing: stop, stopTimeoutMs: patienceMs };
    const silent = { state: undefined, epoch: undefined, pod: undefined };
    switch (step.verb) {
      case "open":
      case "take_over": {
        const view = await registry.open(workspace, { ...openWish, ...starting }, signal);
        return toldOf(view);
      }
      case "resume": {
        const view = await registry.resume(workspace, starting, signal);
        return toldOf(view);
      }
      case "suspend": {
        const { view } = await registry.suspend(workspace, stopping, signal);
        return toldOf(view);
      }
      case "destroy": {
        const { view } = await registry.destroy(workspace, { ...stopping, deleteDisk: false }, signal);
        return view ? toldOf(view) : silent;
      }
      case "delete":
        await registry.destroy(workspace, { ...stopping, deleteDisk: true }, signal);
        return silent;
      case "object_suspend":
        await registry.suspendObject(workspace, { fencing: stop, stopTimeoutMs: patienceMs }, signal);
        return silent;
      case "object_delete":
        await registry.deleteObject(workspace, { fencing: stop, stopTimeoutMs: patienceMs }, signal);
        return silent;
      case "execute":
      case "program": {
        const executionId = `x${this.#executions++}`;
        if (!isExecutionId(executionId)) throw new Error("not an execution id");
        const isProgram = step.verb === "program";
        const wish = executionWish({ executionId, command: isProgram ? "long" : "echo", onDisconnect: "detach" });
        const events = registry.stream(workspace, signal, (open) => open.execute(wish, signal, own));
        for await (const event of events) {
          if (isProgram && event.t === "started") return silent;
        }
        return silent;
      }
      case "read": {
        const { view } = await registry.read(workspace, false, signal);
        return toldOf(view);
      }
      case "close":
        registry.close(workspace);
        return silent;
    }
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

const toldOf = ({ state, holderEpoch, identity }: WorkspaceView): Told => ({
  state,
  epoch: holderEpoch,
  pod: identity.podUid,
});
