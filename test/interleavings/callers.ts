import { holderEpochFrom, isExecutionId, type WorkspaceId } from "@holdfast/contract";
import type { WorkspaceRegistry } from "@holdfast/control-plane";
import { HoldfastError } from "@holdfast/errors";
import { executionWish, openWish, suspendWish } from "@holdfast/testkit";
import type { StartFencing, StopFencing, WorkspaceView } from "@holdfast/workspace";
import type { CallStep } from "./steps.ts";
import type { Tally } from "./tally.ts";
import { type Answer, type CallRecord, deleteVerbs, inCall, stopVerbs } from "./world/calls.ts";

/** Where calls are made. */
export interface CallHost {
  readonly workspace: WorkspaceId;
  readonly calls: CallRecord[];
  /** A command that runs on by itself. */
  readonly longCommand: { readonly command: string; readonly args: readonly string[] };
  registryOf(replica: number): WorkspaceRegistry;
  revision(): number;
  nextOrder(): number;
  later(ms: number, run: () => void): void;
  /** Told of each answer, once it is in its record. */
  answered(call: CallRecord): void;
  tell(text: string): void;
}

interface Caller {
  /** Learned from take-overs; callers of a fenced theme begin with one of their own. */
  epoch: number | undefined;
}

type Told = Omit<Extract<Answer, { readonly t: "ok" }>, "t">;

const left = new Error("the caller went away");
const patienceMs = 20_000;
const silent: Told = { state: undefined, epoch: undefined, pod: undefined };

/** The callers of a sequence, and what they present. Nothing is awaited: calls overlap as they may. */
export class Callers {
  readonly #host: CallHost;
  readonly #tally: Tally;
  readonly #callers: readonly Caller[];
  /** Starts go on with whatever disk stands. */
  acceptsReplacedDisk = false;
  #executions = 0;

  constructor(host: CallHost, fenced: boolean, tally: Tally) {
    this.#host = host;
    this.#tally = tally;
    this.#callers = [undefined, fenced ? 2 : undefined, fenced ? 5 : undefined, undefined].map((epoch) => ({ epoch }));
  }

  call(step: CallStep): CallRecord {
    const host = this.#host;
    const registry = host.registryOf(step.replica);
    const caller = this.#callers[step.caller] as Caller;
    const ignoresFence = step.ignoresFence && [...stopVerbs, ...deleteVerbs].includes(step.verb);
    const record: CallRecord = {
      id: host.calls.length,
      caller: step.caller,
      replica: step.replica,
      verb: step.verb,
      epoch: step.verb === "take_over" || ignoresFence ? undefined : caller.epoch,
      ignoresFence,
      leavesOnFailure: step.leavesOnFailure,
      stateBefore: registry.stateOf(host.workspace) ?? "none",
      fromRevision: host.revision(),
      fromOrder: host.nextOrder(),
      toRevision: undefined,
      executionId: undefined,
      answer: undefined,
      isAbandoned: false,
      order: undefined,
      met: new Set(),
    };
    host.calls.push(record);
    const { id, verb, replica, epoch, stateBefore } = record;
    host.tell(`CALL ${id} ${verb} caller ${step.caller} r${replica} epoch ${epoch} in ${stateBefore}`);
    this.#tally.count(`verb ${verb}`, stateBefore);
    const gone = new AbortController();
    if (step.goesAfterMs !== undefined) host.later(step.goesAfterMs, () => gone.abort(left));
    inCall(record, () => this.#make(registry, step, caller, record, gone.signal)).then(
      (told) => this.#end(record, caller, { t: "ok", ...told }),
      (error: Error) => {
        // Whatever it fails with once its caller is away, nobody hears it.
        if (gone.signal.aborted) record.isAbandoned = true;
        const isNamed = error instanceof HoldfastError;
        const unnamed = record.isAbandoned ? "replica killed" : "DEFECT";
        const reason = gone.signal.aborted ? "caller left" : isNamed ? error.reason : unnamed;
        this.#end(record, caller, { t: "error", reason, error });
      },
    );
    return record;
  }

  #end(record: CallRecord, caller: Caller, answer: Answer): void {
    const host = this.#host;
    const { id, verb, stateBefore, met } = record;
    record.toRevision = host.revision();
    record.order = host.nextOrder();
    record.answer = answer;
    if (answer.t === "ok" && answer.epoch !== undefined && verb === "take_over") {
      record.epoch = answer.epoch;
      if (!record.isAbandoned) caller.epoch = answer.epoch;
    }
    for (const fault of met) {
      this.#tally.count(`verb and fault: ${verb}`, fault);
      this.#tally.count(`state and fault: ${stateBefore}`, fault);
    }
    this.#tally.count("answer", answer.t === "error" ? answer.reason : "ok");
    const words = answer.t === "error" ? `${answer.reason} ${answer.error.message}` : `${answer.state} ${answer.epoch}`;
    host.tell(`ANSWER ${id} ${words}`);
    host.answered(record);
  }

  async #make(
    registry: WorkspaceRegistry,
    step: CallStep,
    caller: Caller,
    record: CallRecord,
    signal: AbortSignal,
  ): Promise<Told> {
    const { workspace } = this.#host;
    const own = caller.epoch === undefined ? undefined : holderEpochFrom(caller.epoch);
    const epoch: StartFencing = own === undefined ? { t: "none" } : { t: "epoch", epoch: own };
    const start: StartFencing = step.verb === "take_over" ? { t: "take_over" } : epoch;
    const stop: StopFencing = step.ignoresFence ? { t: "ignore_fence", by: "a test" } : epoch;
    const onStartFailure = step.leavesOnFailure ? "leave" : "suspend_if_woken";
    const { acceptsReplacedDisk: acceptReplacedDisk } = this;
    const starting = { fencing: start, onStartFailure, acceptReplacedDisk, readyTimeoutMs: patienceMs } as const;
    const stopping = { ...suspendWish, fencing: stop, stopTimeoutMs: patienceMs };
    const byObject = { fencing: stop, stopTimeoutMs: patienceMs };
    switch (step.verb) {
      case "open":
      case "take_over":
        return toldOf(await registry.open(workspace, { ...openWish, ...starting }, signal));
      case "resume":
        return toldOf(await registry.resume(workspace, starting, signal));
      case "suspend":
        return toldOf((await registry.suspend(workspace, stopping, signal)).view);
      case "destroy": {
        const { view } = await registry.destroy(workspace, { ...stopping, deleteDisk: false }, signal);
        return view ? toldOf(view) : silent;
      }
      case "delete":
        await registry.destroy(workspace, { ...stopping, deleteDisk: true }, signal);
        return silent;
      case "object_suspend":
        await registry.suspendObject(workspace, byObject, signal);
        return silent;
      case "object_delete":
        await registry.deleteObject(workspace, byObject, signal);
        return silent;
      case "execute":
      case "program":
        await this.#execute(registry, record, own, signal);
        return silent;
      case "read":
        return toldOf((await registry.read(workspace, false, signal)).view);
      case "close":
        registry.close(workspace);
        return silent;
    }
  }

  /** A program is left running once it has started. */
  async #execute(
    registry: WorkspaceRegistry,
    record: CallRecord,
    own: ReturnType<typeof holderEpochFrom> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { workspace, longCommand } = this.#host;
    this.#executions += 1;
    const executionId = `x${this.#executions}`;
    if (!isExecutionId(executionId)) throw new Error("not an execution id");
    record.executionId = executionId;
    const isProgram = record.verb === "program";
    const command = isProgram ? longCommand : { command: "echo", args: [] };
    const wish = executionWish({ executionId, ...command, onDisconnect: "detach" });
    const events = registry.stream(workspace, signal, (open) => open.execute(wish, signal, own));
    for await (const event of events) if (isProgram && event.t === "started") return;
  }
}

const toldOf = ({ state, holderEpoch, identity }: WorkspaceView): Told => ({
  state,
  epoch: holderEpoch,
  pod: identity.podUid,
});
