import { type Deadline, orAborted } from "@holdfast/async";
import type { ExecutionId, HolderEpoch, WorkspaceId } from "@holdfast/contract";
import { bindablePodWaitMs } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { connectPort, type TunnelEvent } from "./calls/connect-port.ts";
import { execute } from "./calls/execute.ts";
import { WorkspaceExecutions } from "./calls/executions.ts";
import { WorkspaceFiles } from "./calls/files.ts";
import { rereadAfresh } from "./calls/reread.ts";
import { WorkspaceSessions } from "./calls/sessions.ts";
import type { WorkspaceDeps } from "./deps.ts";
import type { WorkspaceEvents } from "./events/workspace-events.ts";
import { fencingKey, type StopFencing, unfenced } from "./fence/fencing.ts";
import { epochToStore } from "./fence/holder-epoch.ts";
import { summaryOf } from "./inventory/summary.ts";
import { lookAgain } from "./notice/look-again.ts";
import { Noticing } from "./notice/noticing.ts";
import { isOutlived } from "./outlived.ts";
import type { ClusterNews, SandboxReading } from "./ports/cluster.ts";
import type { ExecutionEvent, ExecutionWish } from "./ports/guest.ts";
import type { PortWish } from "./ports/tunnel.ts";
import { handleOver, isHandleOver, workspaceDeleting, workspaceNotReady, workspaceSuspended } from "./refusals.ts";
import { FreshLook } from "./state/fresh-look.ts";
import { Handle } from "./state/handle.ts";
import type { LateCreates } from "./state/late-creates.ts";
import type { LiveCalls } from "./state/live-calls.ts";
import { boundGuestOf } from "./state/transitions.ts";
import type { WorkspaceState } from "./state/workspace-state.ts";
import { StopFlights } from "./stop-flights.ts";
import { stopIsLate, stopMisses } from "./stop-refusals.ts";
import { TransitionQueue } from "./transition-queue.ts";
import { adopt } from "./verbs/adopt.ts";
import { assertNothingStands, deleteWithDisk } from "./verbs/destroy.ts";
import { skipped } from "./verbs/flush.ts";
import { open } from "./verbs/open.ts";
import { podFactsNow } from "./verbs/pod-facts.ts";
import { unserved } from "./verbs/quiesce.ts";
import { resume } from "./verbs/resume.ts";
import { type Suspended, suspend } from "./verbs/suspend.ts";
import { WorkspaceDisk } from "./verbs/workspace-disk.ts";
import { type PodHealth, viewOf, type WorkspaceSummary, type WorkspaceView } from "./view.ts";
import type { DestroyWish, FlushReport, OpenWish, Origin, QuiesceReport, ResumeWish, SuspendWish } from "./wishes.ts";

/** What was asked of the guest before its pod was stopped. */
export interface StopReports {
  readonly flush: FlushReport;
  /** Undefined: none was asked for. */
  readonly quiesce: QuiesceReport | undefined;
}

/**
 * This service's record of one open workspace: the state, and the verbs that move it, one at a time. It holds no truth that the cluster
 * does not. Once its state is `gone` it is of no further use: drop it, and make a new one for the next call.
 */
export class Workspace {
  readonly id: WorkspaceId;
  /** Its files, through the bound guest, for calls that carry no epoch. */
  readonly files: WorkspaceFiles;
  readonly #ws: Handle;
  readonly #transitions: TransitionQueue;
  /** Looks that begin once they are asked for. */
  readonly #outlived = new FreshLook<boolean | undefined>();
  readonly #noticing: Noticing;
  /** By whose word it is (L3). */
  readonly #suspends: StopFlights<Suspended>;
  /** By the uid that their callers expect, and whose word it is: nobody joins the delete of what he did not mean, or may not. */
  readonly #deletes: StopFlights<boolean>;

  /** `lateCreates`, `live`: those that all handles of this process share. */
  constructor(id: WorkspaceId, deps: WorkspaceDeps, lateCreates?: LateCreates, live?: LiveCalls) {
    this.id = id;
    this.#ws = new Handle(id, deps, lateCreates, live);
    this.files = this.filesUnder(undefined);
    this.#transitions = new TransitionQueue(this.#ws);
    this.#noticing = new Noticing(this.#ws, this.#transitions);
    this.#ws.lookAgain = () => lookAgain(this.#ws);
    const { told } = deps;
    if (told) this.#ws.tell = (news) => told(id, news, () => viewOf(this.#ws));
    this.#suspends = new StopFlights(deps);
    this.#deletes = new StopFlights(deps);
  }

  /** What this handle notices of its guest without having asked for it. */
  get events(): WorkspaceEvents {
    return this.#ws.events;
  }

  get state(): WorkspaceState {
    return this.#ws.state;
  }

  /** A write of ours has no known ending yet: the handle must be kept, whatever a read shows (L1). */
  get hasUnresolvedWrite(): boolean {
    return this.#ws.unresolved.any;
  }

  /** A transition runs or waits, whether or not its caller is still there: no other handle may take this one's place. */
  get inTransition(): boolean {
    return this.#transitions.busy;
  }

  /** Resolves once every transition that has come so far is over. */
  transitionsOver(): Promise<void> {
    return this.#transitions.idle();
  }

  /** A suspend or delete of ours has no known ending yet: what a read shows may not last. */
  get hasUnresolvedStop(): boolean {
    return this.#ws.unresolved.stop;
  }

  /** One uncached look whether what this handle says, that it stops or has stopped, no longer holds (L35); undefined where it failed. Never rejects. */
  async isOutlived(): Promise<boolean | undefined> {
    return await this.#outlived.run(() => isOutlived(this.#ws));
  }

  /** Creates the workspace, or adopts the one that stands; resolves once its guest is bound. A failed one leaves the handle `gone`. */
  async open(wish: OpenWish, caller: AbortSignal): Promise<WorkspaceView> {
    return await this.#start("OpenWorkspace", wish.readyTimeoutMs, caller, (within) => open(this.#ws, wish, within));
  }

  /** Takes on a workspace that runs, for a data-plane call. Never creates, wakes or stamps. Waits at most 10 s for a pod. */
  async adopt(caller: AbortSignal): Promise<void> {
    await this.#start("adopt", bindablePodWaitMs, caller, async (within) => {
      if (this.#ws.state.t === "opening") await adopt(this.#ws, within);
      return "adopted_running";
    });
  }

  /** Brings a pod to the disk and binds it. A failed one leaves the state that a re-read shows. */
  async resume(wish: ResumeWish, caller: AbortSignal): Promise<WorkspaceView> {
    return await this.#start("ResumeWorkspace", wish.readyTimeoutMs, caller, (within) =>
      resume(this.#ws, wish, within),
    );
  }

  /** Stops the pod and keeps the disk; resolves once the pod has been seen gone. */
  async suspend(
    wish: SuspendWish,
    caller: AbortSignal,
  ): Promise<StopReports & { view: WorkspaceView; summary: WorkspaceSummary | undefined }> {
    const { flush, quiesce, sandbox } = await this.#told("SuspendWorkspace", () => this.#suspend(wish, caller));
    return { view: this.view(), flush, quiesce, summary: summaryOf(sandbox) };
  }

  /**
   * Without `deleteDisk` a suspend; with it the object and its disk are deleted. One that is gone already is a success. `deleted`: a
   * DELETE was sent for it.
   */
  async destroy(
    wish: DestroyWish,
    caller: AbortSignal,
  ): Promise<StopReports & { view: WorkspaceView | undefined; deleted: boolean }> {
    return await this.#told("DestroyWorkspace", async () => {
      if (wish.deleteDisk) {
        const deleted = await this.#delete(wish, caller);
        return { view: undefined, flush: skipped("The disk was deleted."), quiesce: undefined, deleted };
      }
      try {
        const { flush, quiesce } = await this.#suspend(wish, caller);
        return { flush, quiesce, view: this.view(), deleted: false };
      } catch (error) {
        if (!hasReason(error, "WORKSPACE_NOT_FOUND")) throw error;
        if (isHandleOver(error)) await assertNothingStands(this.#ws, caller);
        const why = "The workspace does not exist.";
        const quiesce = wish.quiesce && unserved("skipped", why);
        return { view: undefined, flush: skipped(why), quiesce, deleted: false };
      }
    });
  }

  /** Its files, for calls whose changes carry this epoch (L20). */
  filesUnder(epoch: HolderEpoch | undefined): WorkspaceFiles {
    return new WorkspaceFiles(this.#ws, epoch, (operation, error) => this.#named(operation, error));
  }

  /** Its commands, for calls of this RPC that carry this epoch. */
  executionsUnder(epoch: HolderEpoch | undefined, operation: string): WorkspaceExecutions {
    return new WorkspaceExecutions(this.#ws, epoch, (error) => this.#named(operation, error));
  }

  /** Its terminals and detached programs, for calls of this RPC that carry this epoch. */
  sessionsUnder(epoch: HolderEpoch | undefined, operation: string): WorkspaceSessions {
    return new WorkspaceSessions(this.#ws, epoch, (error) => this.#named(operation, error));
  }

  /** Connects to a server in the guest. `outgoing` is what its client sends, to the client's half-close. */
  async *connectPort(
    wish: PortWish,
    outgoing: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    epoch?: HolderEpoch,
  ): AsyncGenerator<TunnelEvent> {
    try {
      yield* connectPort(this.#ws, wish, epoch, outgoing, signal);
    } catch (error) {
      throw this.#named("Connect", error);
    }
  }

  /** Quiesce and flush by themselves, for calls that carry this epoch. */
  diskUnder(epoch: HolderEpoch | undefined): WorkspaceDisk {
    const named = (operation: string, error: unknown): unknown => this.#named(operation, error);
    return new WorkspaceDisk(this.#ws, this.#transitions, epoch, named);
  }

  /**
   * Ends a command and resolves once nothing of it is left. One whose end could not be confirmed keeps its pod, and is told as an event
   * before it is thrown (L43).
   */
  async cancelExecution(
    executionId: ExecutionId,
    caller: AbortSignal,
    epoch?: HolderEpoch,
  ): Promise<{ readonly alreadyEnded: boolean }> {
    return await this.executionsUnder(epoch, "CancelExecution").cancel({ executionId }, caller);
  }

  /** Looks at the object and the pod once, uncached, and takes in what somebody else did (L35). Undefined: the object could not be read. */
  async refresh(caller: AbortSignal): Promise<WorkspaceView | undefined> {
    const { state } = this.#ws;
    if (state.t === "active" && !(await orAborted(rereadAfresh(this.#ws, state.bound), caller))) return undefined;
    return await this.viewNow(caller);
  }

  /**
   * Hears what the watch says of it. Resolves once it has looked, where that contradicts what this handle holds; undefined: nothing is to be
   * done. Never rejects. (L37)
   */
  heard(news: ClusterNews): Promise<void> | undefined {
    return this.#noticing.heard(news);
  }

  /** Runs a command, under the caller's epoch. Admission, the one rebind and the one re-read are inside. */
  async *execute(wish: ExecutionWish, signal: AbortSignal, epoch?: HolderEpoch): AsyncGenerator<ExecutionEvent> {
    try {
      yield* execute(this.#ws, wish, epoch, signal);
    } catch (error) {
      throw this.#named("Execute", error);
    }
  }

  /**
   * What the bound guest says of itself, with what it uses of disk and memory; undefined when none is bound or it does not answer. Never
   * rebinds.
   */
  async health(within: Deadline): Promise<PodHealth | undefined> {
    const { state } = this.#ws;
    if (state.t !== "active") return undefined;
    try {
      const health = await state.bound.guest.health(within, { use: true });
      this.#ws.noteBootId(state.bound, health.bootId);
      return { ...health, podUid: state.bound.pod.uid };
    } catch (error) {
      this.#ws.deps.log.info({ workspaceId: this.id, error }, "the guest did not tell its health");
      return undefined;
    }
  }

  /** As it stands by what this handle knows. */
  view(): WorkspaceView {
    return viewOf(this.#ws);
  }

  /** The view with the bound pod's facts as they are now; as they were at the bind where they cannot be read. */
  async viewNow(caller: AbortSignal): Promise<WorkspaceView> {
    const before = this.view();
    const now = await podFactsNow(this.#ws, caller);
    const view = this.view();
    return now && view.identity.podUid === before.identity.podUid ? { ...view, pod: now } : view;
  }

  /** Lets the handle go: touches neither pod nor disk, and ends nobody's stream. */
  close(): void {
    this.#noticing.close();
    const bound = boundGuestOf(this.#ws.state);
    if (bound) this.#ws.leases.retire(bound.guest);
  }

  async #start(
    operation: string,
    budgetMs: number,
    caller: AbortSignal,
    start: (within: Deadline) => Promise<Origin>,
  ): Promise<WorkspaceView> {
    return await this.#told(operation, async () => {
      const late = (): HoldfastError =>
        workspaceNotReady(this.#ws, `another transition of it took longer than the ${budgetMs} ms that this call had`);
      const { origin, epoch, startedAs } = await this.#transitions.start(budgetMs, caller, late, async (within) => {
        if (this.#ws.state.t === "gone") throw handleOver(this.#ws, this.#ws.state.why);
        // Of this call: by the time of the view another may have taken it over, or news have come.
        const origin = await start(within);
        return { origin, epoch: this.#ws.actingUnder, startedAs: this.#ws.startedAs };
      });
      const { state, transition, identity, pod } = startedAs ?? this.view();
      const view = { ...this.view(), state, transition, identity, pod, origin };
      return epoch === undefined ? view : { ...view, holderEpoch: epoch };
    });
  }

  #suspend(wish: SuspendWish, caller: AbortSignal): Promise<Suspended> {
    const { quiesce, flush, stopTimeoutMs, fencing = unfenced } = wish;
    return this.#suspends.join(fencingKey(fencing), {
      budgetMs: stopTimeoutMs,
      asks: { quiesce: quiesce !== undefined, flush: flush.enabled },
      caller,
      begin: (within) =>
        this.#transitions.stop(
          workspaceSuspended(this.#ws, "PREEMPTED"),
          () => this.#lookAtFence(fencing, within),
          () => this.#stop(() => suspend(this.#ws, wish, within)),
        ),
      missed: (what) => stopMisses(this.id, what),
      late: (begun) => stopIsLate(this.id, "suspend", begun, stopTimeoutMs),
    });
  }

  #delete(wish: DestroyWish, caller: AbortSignal): Promise<boolean> {
    const { stopTimeoutMs, expectedSandboxUid = "", fencing = unfenced } = wish;
    return this.#deletes.join(`${expectedSandboxUid} ${fencingKey(fencing)}`, {
      budgetMs: stopTimeoutMs,
      asks: { quiesce: false, flush: false },
      caller,
      begin: (within) =>
        this.#transitions.stop(
          workspaceDeleting(this.#ws),
          () => this.#lookAtFence(fencing, within),
          () => this.#stop(() => deleteWithDisk(this.#ws, wish, within)),
        ),
      missed: (what) => stopMisses(this.id, what),
      late: (begun) => stopIsLate(this.id, "delete", begun, stopTimeoutMs),
    });
  }

  /** Throws where the fence refuses a stop that would end a start before its turn. The gate is asked again in its turn. */
  async #lookAtFence(fencing: StopFencing, within: Deadline): Promise<"passes" | "unread"> {
    let sandbox: SandboxReading | undefined;
    try {
      sandbox = await this.#ws.deps.cluster.readSandbox(this.#ws.name, within);
    } catch (error) {
      this.#ws.deps.log.info({ workspaceId: this.id, error }, "a stop waits for its turn: its fence could not be read");
      return "unread";
    }
    if (sandbox) epochToStore(sandbox, fencing);
    return "passes";
  }

  /** A stop on a handle that knew nothing yet and could not even look leaves no handle. */
  async #stop<Result>(stop: () => Promise<Result>): Promise<Result> {
    try {
      return await stop();
    } finally {
      if (this.#ws.state.t === "opening") {
        this.#ws.commit({ t: "startFailed", standing: { t: "gone", why: "start_failed" } });
      }
    }
  }

  async #told<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
    try {
      return await run();
    } catch (error) {
      throw this.#named(operation, error);
    }
  }

  #named(operation: string, error: unknown): unknown {
    if (!(error instanceof HoldfastError)) return error;
    return error.withMetadata({ operation, workspace_id: this.id, sandbox: this.#ws.name });
  }
}
