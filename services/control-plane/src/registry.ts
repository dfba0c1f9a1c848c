import { Deadline, orAborted, Slots } from "@holdfast/async";
import {
  flushTimeoutDefaultMs,
  guestHealthTimeoutMs,
  type HolderEpoch,
  handlesMax,
  looksAtOnceMax,
  readsInsteadOfListMax,
  sandboxNameOf,
  type WorkspaceId,
  watchListPageSize,
  watchListTimeoutMs,
  workspaceIdOf,
} from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import {
  type ClusterNews,
  type DestroyWish,
  type ExecutionEvent,
  type ExecutionWish,
  FreshLook,
  type GuestHealth,
  isHandleOver,
  isNotSent,
  LateCreates,
  LiveCalls,
  type OpenWish,
  type PodHealth,
  type ResumeWish,
  readThrough,
  type SuspendWish,
  viewWithHealth,
  Workspace,
  type WorkspaceDeps,
  type WorkspaceView,
} from "@holdfast/workspace";
import {
  type Entry,
  isAtWork,
  mayBeOutlived,
  maySayOldNews,
  movedMeanwhile,
  notLookedAt,
  saysStopped,
} from "./registry-entry.ts";

interface Found {
  readonly entry: Entry;
  /** By a read that began once the call had come. */
  readonly wasLookedAt: boolean;
}

/** How often a call is made again whose handle ended before its turn. Each time another call of ours ended it. */
const newHandlesMax = 8;

/**
 * The handles of this process, by workspace. A handle holds no truth: one that is dropped is found again on the cluster, so the
 * registry drops what failed to open, what is gone, and, when it is full, what was used longest ago. (docs/design/rpc.md)
 */
export class WorkspaceRegistry {
  readonly #deps: WorkspaceDeps;
  readonly #limit: number;
  readonly #lateCreates = new LateCreates();
  /** In the order of last use, the oldest first. */
  readonly #entries = new Map<WorkspaceId, Entry>();
  /** Silent adoptions that are on their way. */
  readonly #adoptions = new Map<WorkspaceId, Promise<void>>();
  /** What callers hold open, also through handles that were let go. */
  readonly #held = new LiveCalls();
  readonly #missed = new FreshLook<void>();
  /** Aborts the work that belongs to the registry rather than to a caller. */
  readonly #closed = new AbortController();

  constructor(deps: WorkspaceDeps, limit = handlesMax) {
    this.#deps = deps;
    this.#limit = limit;
  }

  /** How many handles are held. */
  get size(): number {
    return this.#entries.size;
  }

  /** The state of the handle, in the words of the state table; undefined when none is held. */
  stateOf(id: WorkspaceId): Workspace["state"]["t"] | undefined {
    return this.#entries.get(id)?.workspace.state.t;
  }

  open(id: WorkspaceId, wish: OpenWish, caller: AbortSignal): Promise<WorkspaceView> {
    return this.#use(id, (workspace) => workspace.open(wish, caller));
  }

  suspend(id: WorkspaceId, wish: SuspendWish, caller: AbortSignal): ReturnType<Workspace["suspend"]> {
    return this.#use(id, (workspace) => workspace.suspend(wish, caller));
  }

  resume(id: WorkspaceId, wish: ResumeWish, caller: AbortSignal): Promise<WorkspaceView> {
    return this.#use(id, (workspace) => workspace.resume(wish, caller));
  }

  destroy(id: WorkspaceId, wish: DestroyWish, caller: AbortSignal): ReturnType<Workspace["destroy"]> {
    return this.#use(id, (workspace) => workspace.destroy(wish, caller));
  }

  /** Suspends by object: in the turn of the handle that is open here, else without leaving one. No guest is asked. */
  async suspendObject(
    id: WorkspaceId,
    { stopTimeoutMs, fencing }: Pick<SuspendWish, "stopTimeoutMs" | "fencing">,
    caller: AbortSignal,
  ): ReturnType<Workspace["suspend"]> {
    const wish = { flush: { enabled: false, timeoutMs: flushTimeoutDefaultMs }, stopTimeoutMs, fencing };
    return await this.#byObject(id, caller, (workspace, until) => workspace.suspend(wish, until));
  }

  /** Deletes by object, disk and all; true when a DELETE was sent. In the turn of the handle that is open here, else without leaving one. */
  async deleteObject(
    id: WorkspaceId,
    {
      expectedSandboxUid,
      stopTimeoutMs,
      fencing,
    }: Pick<DestroyWish, "expectedSandboxUid" | "stopTimeoutMs" | "fencing">,
    caller: AbortSignal,
  ): Promise<boolean> {
    const flush = { enabled: false, timeoutMs: flushTimeoutDefaultMs };
    const wish: DestroyWish = { deleteDisk: true, expectedSandboxUid, flush, stopTimeoutMs, fencing };
    return (await this.#byObject(id, caller, (workspace, until) => workspace.destroy(wish, until))).deleted;
  }

  /**
   * Hears what the watch says. A handle that it contradicts looks, and is dropped where it is over; one that is not held, or not concerned,
   * costs nothing (L37). Resolves once all that is done, for tests.
   */
  async heard(news: ClusterNews): Promise<void> {
    if (news.t === "missed") await this.#missed.run(() => this.#lookAfterGap());
    else await this.#tell(workspaceIdOf(news.name), news);
  }

  /**
   * The workspace as it stands: its handle's view, or read through where none is open here. `withHealth` asks its guest, for its health and
   * for the pod's use of disk and memory; without it, and where the workspace is read through, no guest is asked.
   */
  async read(
    id: WorkspaceId,
    withHealth: boolean,
    caller: AbortSignal,
  ): Promise<{ view: WorkspaceView; health: GuestHealth | undefined }> {
    const look = await this.#dropIfOutlived(id, caller);
    const entry = this.#live(id);
    if (!entry || look === "failed" || this.#adoptions.has(id) || maySayOldNews(entry)) {
      return { view: await this.#readThrough(id, caller), health: undefined };
    }
    const { workspace } = entry;
    const [view, health] = await Promise.all([
      workspace.refresh(caller),
      withHealth ? this.#healthOf(workspace, caller) : undefined,
    ]);
    if (!view || workspace.state.t === "gone") {
      return { view: await this.#readThrough(id, caller), health: undefined };
    }
    return viewWithHealth(view, health);
  }

  /** As `read`, of an uncached read of the object that begins now; rejects where it cannot be read. */
  async refresh(id: WorkspaceId, caller: AbortSignal): Promise<WorkspaceView> {
    const fresh = await this.#readThrough(id, caller);
    // A handle takes in what stands, and says more of it.
    return this.#live(id) ? (await this.read(id, false, caller)).view : fresh;
  }

  /** Runs a command in a workspace that is open here, or that runs and is adopted silently. */
  async *execute(
    id: WorkspaceId,
    wish: ExecutionWish,
    signal: AbortSignal,
    epoch?: HolderEpoch,
  ): AsyncGenerator<ExecutionEvent> {
    yield* this.stream(id, signal, (workspace) => workspace.execute(wish, signal, epoch));
  }

  /** A data-plane call that streams, on a workspace that is open here, or that runs and is adopted silently. */
  async *stream<Event>(
    id: WorkspaceId,
    signal: AbortSignal,
    open: (workspace: Workspace) => AsyncIterable<Event>,
  ): AsyncGenerator<Event, void> {
    let mayDoubt = true;
    for (let handles = 1; ; handles += 1) {
      const { entry, wasLookedAt } = await this.#require(id, signal);
      let refused: HoldfastError | undefined;
      entry.calls += 1;
      try {
        return yield* open(entry.workspace);
      } catch (error) {
        if (isNotSent(error) && mayDoubt && !wasLookedAt) refused = error;
        else if (!isHandleOver(error) || handles === newHandlesMax) throw error;
      } finally {
        this.#release(entry);
      }
      if (!refused) continue;
      mayDoubt = false;
      await this.#assertOld(refused, entry, signal);
    }
  }

  /** A data-plane call with one answer, likewise. */
  async ask<Answer>(
    id: WorkspaceId,
    signal: AbortSignal,
    ask: (workspace: Workspace) => Promise<Answer>,
  ): Promise<Answer> {
    const open = async function* (workspace: Workspace): AsyncGenerator<Answer> {
      yield await ask(workspace);
    };
    for await (const answer of this.stream(id, signal, open)) return answer;
    throw new Error("a call with one answer ended without it");
  }

  /**
   * Lets the handle go; false when none was open. One that is in a transition, or whose write has no known ending, is kept until that
   * is over: another handle beside it would not know of it.
   */
  close(id: WorkspaceId): boolean {
    const entry = this.#live(id);
    if (!entry || entry.letGo) return false;
    entry.letGo = true;
    this.#dropIfOver(entry);
    return true;
  }

  /** Lets every handle go, at the end of the process. */
  closeAll(): void {
    this.#closed.abort(new Error("the service has stopped"));
    for (const { workspace } of this.#entries.values()) workspace.close();
    this.#entries.clear();
  }

  /** The handle for a data-plane call: open here, or adopted. Whoever comes during an adoption joins it. */
  async #require(id: WorkspaceId, caller: AbortSignal): Promise<Found> {
    const look = await this.#dropIfOutlived(id, caller);
    const standing = this.#live(id);
    if (look === "failed" && standing && mayBeOutlived(standing) && !standing.workspace.hasUnresolvedStop) {
      throw notLookedAt(id);
    }
    if (standing && !this.#adoptions.has(id)) return { entry: standing, wasLookedAt: look === "looked" };
    await this.#adopted(id, caller);
    const adopted = this.#live(id);
    if (adopted) return { entry: adopted, wasLookedAt: true };
    throw new HoldfastError("WORKSPACE_NOT_READY", {
      message: `The call was not carried out: workspace ${id} was let go here while it was being looked up. Call again.`,
    });
  }

  /** One that began before the call came may have found what no longer holds: its refusal is looked at again, once. */
  async #adopted(id: WorkspaceId, caller: AbortSignal): Promise<void> {
    const running = this.#adoptions.get(id);
    try {
      return await orAborted(running ?? this.#beginAdoption(id), caller);
    } catch (error) {
      if (!running || caller.aborted || hasReason(error, "WORKSPACE_NOT_READY")) throw error;
    }
    await orAborted(this.#adoptions.get(id) ?? this.#beginAdoption(id), caller);
  }

  /** The adoption is the registry's: a caller that goes away ends only its own wait. */
  #beginAdoption(id: WorkspaceId): Promise<void> {
    const adoption = this.#use(id, (workspace) => workspace.adopt(this.#closed.signal));
    this.#adoptions.set(id, adoption);
    const over = (): void => void this.#adoptions.delete(id);
    adoption.then(over, over);
    return adoption;
  }

  /**
   * L35: a handle that says suspending, suspended or deleting, with no stop of ours unresolved, is dropped when an uncached read shows that this
   * no longer holds. A look that fails changes nothing: what the handle has confirmed stands, though it may be old news. Undefined: there
   * was nothing to look at.
   */
  async #dropIfOutlived(id: WorkspaceId, caller: AbortSignal): Promise<"failed" | "looked" | undefined> {
    const entry = this.#live(id);
    if (!entry || !mayBeOutlived(entry)) return undefined;
    const { workspace } = entry;
    const isOutlived = await orAborted(workspace.isOutlived(), caller);
    // The look may have settled a write: it is asked after only now.
    const isOver = isOutlived && mayBeOutlived(entry) && !workspace.hasUnresolvedStop;
    if (isOver && this.#entries.get(id) === entry) this.#drop(entry);
    return isOutlived === undefined ? "failed" : "looked";
  }

  /** L35: what refused a call may have been learned before the call came. Throws where it holds, and where that cannot be told. */
  async #assertOld(refused: HoldfastError, entry: Entry, caller: AbortSignal): Promise<void> {
    const { workspace } = entry;
    const isOutlived = await orAborted(workspace.isOutlived(), caller);
    if (!saysStopped(entry)) return; // It has moved on since.
    if (workspace.hasUnresolvedStop || isOutlived === false) throw refused;
    if (isOutlived === undefined) throw notLookedAt(workspace.id);
    if (!mayBeOutlived(entry)) throw movedMeanwhile(workspace.id);
    if (this.#entries.get(workspace.id) === entry) this.#drop(entry);
  }

  async #tell(id: WorkspaceId | undefined, news: ClusterNews): Promise<void> {
    const entry = id === undefined ? undefined : this.#entries.get(id);
    const done = entry?.workspace.heard(news);
    if (!entry || !done) return;
    await done;
    this.#dropIfOver(entry);
  }

  /** Whatever happened while nobody watched: few handles read their own objects, many are compared with one list. Never rejects. */
  async #lookAfterGap(): Promise<void> {
    const held = [...this.#entries.keys()];
    const slots = new Slots(looksAtOnceMax);
    const news = held.length > readsInsteadOfListMax ? await this.#listedNews() : undefined;
    const newsOf = (id: WorkspaceId): ClusterNews => {
      const name = sandboxNameOf(id);
      return news ? (news.get(name) ?? { t: "changed", name }) : { t: "missed" };
    };
    await Promise.all(held.map((id) => slots.run(() => this.#tell(id, newsOf(id)))));
  }

  /** What stands, as news by name; undefined where it could not be listed. */
  async #listedNews(): Promise<ReadonlyMap<string, ClusterNews> | undefined> {
    using within = new Deadline(this.#deps.clock, watchListTimeoutMs, this.#closed.signal);
    const news = new Map<string, ClusterNews>();
    try {
      let continueToken: string | undefined;
      do {
        const page = await this.#deps.cluster.listSandboxes({ limit: watchListPageSize, continueToken }, within);
        for (const { name, uid, mode, stamps } of page.sandboxes) {
          const { holderEpoch } = stamps;
          news.set(name, { t: "sandbox", name, uid, mode, deleting: false, holderEpoch, happened: "modified" });
        }
        continueToken = page.continueToken;
      } while (continueToken !== undefined);
      return news;
    } catch (error) {
      this.#deps.log.info({ error }, "what a watch missed could not be listed: each workspace is looked at");
      return undefined;
    }
  }

  #readThrough(id: WorkspaceId, caller: AbortSignal): Promise<WorkspaceView> {
    return readThrough(this.#deps, id, caller, this.#held);
  }

  async #healthOf(workspace: Workspace, caller: AbortSignal): Promise<PodHealth | undefined> {
    using within = new Deadline(this.#deps.clock, guestHealthTimeoutMs, caller);
    return await workspace.health(within);
  }

  /** What was begun by object is the registry's, so that no handle outlives it: a caller that goes away ends only its own wait. */
  #byObject<Result>(
    id: WorkspaceId,
    caller: AbortSignal,
    run: (workspace: Workspace, until: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    caller.throwIfAborted();
    const until = this.#closed.signal;
    return orAborted(
      this.#use(id, (workspace) => run(workspace, until), "by object"),
      caller,
    );
  }

  async #use<Result>(
    id: WorkspaceId,
    run: (workspace: Workspace) => Promise<Result>,
    how: "as open" | "by object" = "as open",
  ): Promise<Result> {
    for (let handles = 1; ; handles += 1) {
      const entry = this.#live(id) ?? this.#add(id);
      entry.calls += 1;
      entry.isOpen ||= how === "as open";
      if (how === "as open") entry.letGo = false;
      try {
        return await run(entry.workspace);
      } catch (error) {
        if (!isHandleOver(error) || handles === newHandlesMax) throw error;
      } finally {
        this.#release(entry);
      }
    }
  }

  /** The entry of a handle that is not gone, as the most recently used. */
  #live(id: WorkspaceId): Entry | undefined {
    const entry = this.#entries.get(id);
    if (!entry) return undefined;
    this.#entries.delete(id);
    if (entry.workspace.state.t === "gone") return undefined;
    this.#entries.set(id, entry);
    return entry;
  }

  #add(id: WorkspaceId): Entry {
    if (this.#entries.size >= this.#limit) this.#dropOldest();
    const workspace = new Workspace(id, this.#deps, this.#lateCreates, this.#held);
    const entry: Entry = { workspace, calls: 0, isOpen: false, letGo: false };
    this.#entries.set(id, entry);
    return entry;
  }

  #release(entry: Entry): void {
    entry.calls -= 1;
    this.#dropIfOver(entry);
  }

  /** Drops a handle that is gone, that was let go, that nothing came of (a failed Open leaves none, L6), or that served by object. */
  #dropIfOver(entry: Entry): void {
    const { workspace, calls, letGo, isOpen } = entry;
    if (this.#entries.get(workspace.id) !== entry) return;
    const nothingCame = workspace.state.t === "opening" && calls === 0;
    const servedObject = !isOpen && calls === 0;
    if (workspace.state.t !== "gone" && !nothingCame && !letGo && !servedObject) return;
    if (workspace.state.t === "gone") this.#entries.delete(workspace.id);
    else if (workspace.inTransition) void workspace.transitionsOver().then(() => this.#dropIfOver(entry));
    else if (!workspace.hasUnresolvedWrite) this.#drop(entry);
  }

  #drop({ workspace }: Entry): void {
    this.#entries.delete(workspace.id);
    workspace.close();
  }

  #dropOldest(): void {
    for (const entry of this.#entries.values()) {
      if (entry.calls > 0 || isAtWork(entry)) continue;
      this.#drop(entry);
      return;
    }
    throw new HoldfastError("WORKSPACE_CAPACITY", {
      message: `The call was not carried out: this process holds ${this.#limit} workspaces, all in use. Use another process, or close one.`,
      metadata: { limit: String(this.#limit) },
    });
  }
}
