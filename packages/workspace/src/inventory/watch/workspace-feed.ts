import { Deadline, pause, reopenWaitMs, SingleFlight } from "@holdfast/async";
import { rewindGatherMs, watchedWorkspacesMax, watchListTimeoutMs, watchTimings } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import type { WorkspaceDeps } from "../../deps.ts";
import type { SandboxNews, SandboxWatchEnd } from "../../ports/cluster.ts";
import type { WorkspaceSummary } from "../../view.ts";
import { ChangeLog } from "./change-log.ts";
import { listSummaries } from "./list-summaries.ts";
import { ReplayedChanges } from "./replayed-changes.ts";
import { isAfter, isComparable } from "./resource-version.ts";
import { SummaryCache } from "./summary-cache.ts";
import type { Watcher } from "./watcher.ts";

export type FeedDeps = Pick<WorkspaceDeps, "cluster" | "clock" | "log">;

/** How one stretch of the watch ended. */
interface StretchEnd extends SandboxWatchEnd {
  /** Where it began, when that was before the head: it had gone back for watchers that are behind. */
  readonly rewoundTo: string | undefined;
  /** It was ended here, to go back. */
  readonly isInterrupted: boolean;
}

/**
 * The inventory, followed once for all watchers: one list, then one watch, resumed where it broke off. Who is behind is served from
 * the log of changes; for what is older than that the one watch goes back, and everyone skips what he has heard.
 * (docs/design/inventory.md)
 */
export class WorkspaceFeed {
  readonly #deps: FeedDeps;
  readonly #watchers = new Set<Watcher>();
  readonly #cache = new SummaryCache();
  readonly #stop = new AbortController();
  readonly #looks = new SingleFlight<"version", string | undefined>();
  readonly #ended: Promise<void>;
  /** How far the cache is; undefined until the first list. Goes back only with the cluster itself. */
  #head: string | undefined;
  #log = new ChangeLog("0");
  #mustList = true;
  #hasFailed = false;
  #replayed = new ReplayedChanges();
  #interrupt: AbortController | undefined;
  #cancelRewind: (() => void) | undefined;
  /** The watch is on its way back. */
  #isOpening = false;
  #rewoundAtMs = Number.NEGATIVE_INFINITY;
  #lastFault = "";

  constructor(deps: FeedDeps) {
    this.#deps = deps;
    this.#ended = this.#run();
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  get isListed(): boolean {
    return this.#head !== undefined;
  }

  /** Nothing was ever listed, and the last try failed: there is nothing to keep. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  join(watcher: Watcher): void {
    this.#watchers.add(watcher);
    if (this.isListed) this.#catchUp(watcher);
  }

  leave(watcher: Watcher): void {
    this.#watchers.delete(watcher);
  }

  /** Everything that stands, and from here on what changes. Only once it is listed. */
  begin(watcher: Watcher): { readonly workspaces: readonly WorkspaceSummary[]; readonly version: string } {
    const version = this.#head;
    if (version === undefined) throw new Error("the inventory has not been listed");
    watcher.begin(version);
    return { workspaces: this.#cache.snapshot(), version };
  }

  /** Ends the list or watch, and every watcher with this error. */
  async close(error: Error): Promise<void> {
    this.#stop.abort(error);
    this.#cancelRewind?.();
    for (const watcher of this.#watchers) watcher.fail(error);
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    const { signal } = this.#stop;
    let faults = 0;
    while (!signal.aborted) {
      const beganMs = clock.monotonicMs();
      const end = await this.#stretch(signal);
      if (signal.aborted) return;
      this.#settle(end);
      // Going back is paced by itself, and where it is refused, the others are not to wait.
      if (end.isInterrupted || (end.rewoundTo !== undefined && end.isExpired)) continue;
      const heldMs = clock.monotonicMs() - beganMs;
      const waitMs = reopenWaitMs(watchTimings, { heldMs, faults, retryAfterMs: end.retryAfterMs });
      faults = heldMs >= watchTimings.steadyAfterMs ? 0 : faults + 1;
      await pause(clock, waitMs, signal).catch(() => undefined); // Only the signal rejects it, and the loop looks at that.
    }
  }

  async #stretch(signal: AbortSignal): Promise<StretchEnd> {
    const interrupt = new AbortController();
    let rewoundTo: string | undefined;
    try {
      if (this.#mustList) await this.#list(signal);
      rewoundTo = this.#goBack();
      this.#interrupt = interrupt;
      const end = await this.#follow(rewoundTo ?? this.#head ?? "", AbortSignal.any([signal, interrupt.signal]));
      return { ...end, rewoundTo, isInterrupted: interrupt.signal.aborted };
    } catch (error) {
      return { ...this.#listFailed(error), rewoundTo, isInterrupted: false };
    } finally {
      this.#interrupt = undefined;
      this.#isOpening = false;
    }
  }

  async #follow(from: string, signal: AbortSignal): Promise<SandboxWatchEnd> {
    this.#replayed = new ReplayedChanges();
    const onOpen = (): void => this.#opened(from);
    const onNews = (news: SandboxNews): void => {
      if (!signal.aborted) this.#heard(news);
    };
    return await this.#deps.cluster.watchSandboxes({ from, onOpen, onNews }, signal);
  }

  async #list(signal: AbortSignal): Promise<void> {
    using within = new Deadline(this.#deps.clock, watchListTimeoutMs, signal);
    const { version, workspaces } = await listSummaries(this.#deps.cluster, within);
    const before = this.#head;
    const changes = this.#cache.replace(workspaces, version);
    this.#head = version;
    this.#mustList = false;
    this.#hasFailed = false;
    if (before === undefined || isAfter(before, version)) {
      // The first list; or the cluster went back in time, and what was heard since is void.
      this.#log = new ChangeLog(version);
      for (const watcher of this.#watchers) if (watcher.standing === "live") watcher.lose();
    }
    for (const change of changes) {
      if (before !== undefined) this.#log.add(change);
      for (const watcher of this.#live()) watcher.hear(change);
    }
    for (const watcher of this.#live()) watcher.pass(version);
    for (const watcher of this.#watchers) this.#catchUp(watcher);
  }

  /** Whoever has heard nothing yet is told; the others wait. */
  #listFailed(error: unknown): SandboxWatchEnd {
    const failure = error instanceof Error ? error : new Error(String(error));
    const isFatal = hasReason(failure, "STREAM_CAPACITY");
    this.#hasFailed = !this.isListed;
    if (!this.#stop.signal.aborted && (isFatal || !this.isListed)) {
      for (const watcher of this.#watchers) watcher.fail(failure);
    }
    return { why: failure.message, isFault: true, isExpired: false, mustList: true, retryAfterMs: undefined };
  }

  /** The cluster sends what came after `from`: whoever waits for that, hears it from here on. */
  #opened(from: string): void {
    for (const watcher of this.#watchers) {
      const { standing, version } = watcher;
      if (standing === "behind" && version !== undefined && !isAfter(from, version)) watcher.begin(version);
    }
    this.#isOpening = false;
    if (this.#oldestBehind() !== undefined) this.#rewindSoon();
  }

  #heard(news: SandboxNews): void {
    const head = this.#head ?? "";
    const isNew = isAfter(news.version, head);
    const change = isNew ? this.#cache.take(news) : this.#replayed.take(news);
    if (isNew) {
      this.#head = news.version;
      if (change) this.#log.add(change);
      if (this.#cache.size > watchedWorkspacesMax) this.#listAgain();
    }
    for (const watcher of this.#live()) {
      if (change) watcher.hear(change);
      if (news.t === "bookmark") watcher.bookmarkDue = true;
      watcher.pass(news.version);
    }
  }

  /** Takes note of how a stretch ended, and sees to everyone who is behind. */
  #settle(end: StretchEnd): void {
    this.#report(end);
    const head = this.#head;
    if (head === undefined) return;
    for (const watcher of this.#live()) {
      if (watcher.version !== undefined && isAfter(head, watcher.version)) watcher.standing = "behind";
    }
    if (end.rewoundTo === undefined) this.#mustList ||= end.mustList;
    else if (end.isExpired) this.#lose(end.rewoundTo);
    for (const watcher of this.#watchers) this.#catchUp(watcher);
  }

  /** What came after this version is not to be had any more. */
  #lose(version: string): void {
    for (const watcher of this.#watchers) {
      const isOlder = watcher.version !== undefined && !isAfter(watcher.version, version);
      if (watcher.standing === "behind" && isOlder) watcher.lose();
    }
  }

  #catchUp(watcher: Watcher): void {
    const head = this.#head;
    const { standing, version } = watcher;
    if (standing === "fresh" || standing === "lost") watcher.wake();
    if (standing !== "behind" || version === undefined || head === undefined) return;
    if (version !== head && !(isComparable(version) && isComparable(head))) watcher.lose();
    else if (isAfter(version, head)) this.#verify(watcher, version);
    else this.#replay(watcher, version, head);
  }

  #replay(watcher: Watcher, version: string, head: string): void {
    const missed = version === head ? [] : this.#log.after(version);
    if (missed === undefined) {
      this.#rewindSoon();
      return;
    }
    watcher.begin(version);
    for (const change of missed) watcher.hear(change);
    watcher.pass(head);
  }

  /** A version that this process has not come to: another one is ahead of it, or the cluster never was there. */
  #verify(watcher: Watcher, version: string): void {
    const look = this.#looks.run("version", async () => {
      using within = new Deadline(this.#deps.clock, watchListTimeoutMs, this.#stop.signal);
      const page = await this.#deps.cluster.listSandboxes({ limit: 1, continueToken: undefined }, within);
      return page.version;
    });
    look.then(
      (now) => {
        if (watcher.standing !== "behind") return;
        if (now === undefined || isAfter(version, now)) watcher.lose();
        else watcher.begin(version);
      },
      (error: unknown) => watcher.fail(error instanceof Error ? error : new Error(String(error))),
    );
  }

  /** Where the watch must go back to, for those whom the log cannot serve. */
  #oldestBehind(): string | undefined {
    let oldest: string | undefined;
    for (const { standing, version } of this.#watchers) {
      if (standing !== "behind" || version === undefined || isAfter(version, this.#head ?? "")) continue;
      if (oldest === undefined || isAfter(oldest, version)) oldest = version;
    }
    return oldest;
  }

  /** Those who come together go back together, and everyone at most once in a while: going back interrupts the watch. */
  #rewindSoon(): void {
    if (this.#cancelRewind) return;
    const { clock } = this.#deps;
    const waitMs = Math.max(rewindGatherMs, this.#rewoundAtMs + watchTimings.spacingMs - clock.monotonicMs());
    this.#cancelRewind = clock.schedule(waitMs, () => {
      this.#cancelRewind = undefined;
      // One that is on its way already sees to the others when it has come.
      if (!this.#isOpening && this.#oldestBehind() !== undefined) this.#interrupt?.abort(new Error("it goes back"));
    });
  }

  /** Where the next stretch begins, when that is not the head. */
  #goBack(): string | undefined {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs < this.#rewoundAtMs + watchTimings.spacingMs) return undefined;
    const oldest = this.#oldestBehind();
    if (oldest === undefined) return undefined;
    this.#rewoundAtMs = nowMs;
    this.#isOpening = true;
    return oldest;
  }

  #listAgain(): void {
    this.#mustList = true;
    this.#interrupt?.abort(new Error("it is listed again"));
  }

  #live(): Watcher[] {
    return [...this.#watchers].filter(({ standing }) => standing === "live");
  }

  /** A fault that lasts is said once. */
  #report(end: StretchEnd): void {
    const fault = end.isFault && !end.isInterrupted ? end.why : "";
    if (fault !== "" && fault !== this.#lastFault) {
      this.#deps.log.warn({ why: fault }, "the watch of workspaces broke off");
    }
    this.#lastFault = fault;
  }
}

/** What a watcher hears when the service has stopped watching. */
export function watchStopped(): HoldfastError {
  return new HoldfastError("SERVICE_DRAINING", {
    message:
      "The watch ended: this process is stopping. Watch again with the last bookmark; another process will serve it.",
  });
}
