import { Broadcast, backoffMs, type Clock, orAborted, pause, type Subscription } from "@holdfast/async";
import { type WorkspaceId, workspaceWatchEventsMax } from "@holdfast/contract";
import type { HandleNews } from "../events/workspace-event.ts";
import type { ClusterNews } from "../ports/cluster.ts";
import { FreshLook } from "../state/fresh-look.ts";
import type { WorkspaceView } from "../view.ts";
import { type ChronicleEntry, type ChronicleEvent, tellsTheSame } from "./chronicle-event.ts";
import { StartSteps } from "./start-steps.ts";

export interface ChronicleDeps {
  readonly clock: Clock;
  /** The workspace as it stands, read anew; undefined when it does not exist. Makes no handle, asks no guest. */
  readonly read: (id: WorkspaceId, signal: AbortSignal) => Promise<WorkspaceView | undefined>;
}

const retry = { firstMs: 250, maxMs: 10_000 };

/**
 * What becomes of one workspace, for all who watch it: the last events, and how it stands. Its sources are the handle of this process,
 * where there is one, and the watch of the cluster, whose word is only a reason to read (L37).
 */
export class Chronicle {
  readonly id: WorkspaceId;
  /** Watchers, counted by who makes them. */
  watchers = 0;
  readonly #deps: ChronicleDeps;
  readonly #closed = new AbortController();
  readonly #woken = new Broadcast<true>();
  readonly #look = new FreshLook<void>();
  readonly #steps = new StartSteps();
  readonly #entries: ChronicleEntry[] = [];
  readonly #pods = new Map<string, string>();
  #sequence: number;
  #standing: { readonly view: WorkspaceView | undefined } | undefined;
  /** How often a handle said how it stands: a read that began before is older. */
  #told = 0;
  #isRetrying = false;
  #object = "";

  /** @param after the number that its events come after: no two chronicles of a process have events of one number. */
  constructor(id: WorkspaceId, deps: ChronicleDeps, after: number) {
    this.id = id;
    this.#deps = deps;
    this.#sequence = after;
  }

  /** The number of the last event. */
  get sequence(): number {
    return this.#sequence;
  }

  /** True while whoever heard all up to here can go on. */
  reaches(sequence: number): boolean {
    const oldest = this.#entries[0]?.sequence ?? this.#sequence + 1;
    return sequence >= oldest - 1 && sequence <= this.#sequence;
  }

  after(sequence: number): ChronicleEntry | undefined {
    const oldest = this.#entries[0]?.sequence ?? 0;
    return this.#entries[sequence + 1 - oldest];
  }

  subscribe(): Subscription {
    return this.#woken.subscribe(true);
  }

  /** How it stands, by a look that begins now or is shared with who asked before it: `sequence` is the last event that it includes. */
  async standing(signal: AbortSignal): Promise<WorkspaceView | undefined> {
    await orAborted(this.#lookNow(), signal);
    if (!this.#standing) throw new Error("a look that succeeded shows how it stands");
    return this.#standing.view;
  }

  close(): void {
    this.#closed.abort(new Error("nobody watches the workspace any more"));
  }

  /** What the handle of this process came to. */
  told(news: HandleNews, view: () => WorkspaceView): void {
    this.#told += 1;
    const now = view();
    if (news.t === "event") {
      this.#record({ t: "noticed", event: news.event, sandboxUid: now.identity.sandboxUid });
      // Another process in the same pod: the view names it by now.
      if (news.event.t === "container_restarted") this.#stands(now);
    } else if (news.t === "progress") {
      const created = news.step === "created" ? this.#steps.created(now.identity.sandboxUid) : undefined;
      if (created) this.#record({ t: "progress", ...created });
      if (news.step === "bound") this.#record({ t: "progress", step: "bound", message: "its guest was reached" });
      if (news.step === "probed") {
        this.#record({
          t: "progress",
          step: "probed",
          message: "its guest has proved that it runs without privileges",
        });
      }
    } else if (news.state === "gone") this.#lookSoon();
    else this.#stands(now);
  }

  /** What the watch of the cluster said. */
  heard(news: ClusterNews): void {
    if (news.t === "pod") this.#heardPod(news);
    else if (news.t !== "sandbox") {
      if (news.t === "missed") this.#pods.clear();
      this.#lookSoon();
    } else {
      const created = news.happened === "added" ? this.#steps.created(news.uid) : undefined;
      if (created) this.#record({ t: "progress", ...created });
      const { uid, mode, deleting, holderEpoch, happened } = news;
      const object = [uid, mode, deleting, holderEpoch, happened === "gone"].join(" ");
      if (object === this.#object) return;
      this.#object = object;
      this.#lookSoon();
    }
  }

  #heardPod({ pod, gone }: Extract<ClusterNews, { readonly t: "pod" }>): void {
    const seen = gone || this.#isSettled ? undefined : this.#steps.ofPod(pod);
    if (seen) this.#record({ t: "progress", ...seen });
    const { phase, ready, deleting, ip, restartCount } = pod;
    const facts = gone ? "gone" : [phase, ready, deleting, ip, restartCount].join(" ");
    if (this.#pods.get(pod.uid) === facts) return;
    if (gone) this.#pods.delete(pod.uid);
    else this.#pods.set(pod.uid, facts);
    this.#lookSoon();
  }

  /** Nothing is being started: what pods do is no progress. */
  get #isSettled(): boolean {
    const state = this.#standing?.view?.state;
    return state === "running" || state === "not_ready" || state === "suspending" || state === "deleting";
  }

  #lookSoon(): void {
    this.#lookNow().catch(() => void this.#retry());
  }

  /** The change was heard and could not be looked at: it is looked at until it can be, for as long as somebody listens. */
  async #retry(): Promise<void> {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    try {
      for (let failures = 0; !this.#closed.signal.aborted; failures += 1) {
        await pause(this.#deps.clock, backoffMs(retry, failures, Math.random()), this.#closed.signal);
        const isDone = await this.#lookNow().then(
          () => true,
          () => false,
        );
        if (isDone) return;
      }
    } catch (error) {
      if (!this.#closed.signal.aborted) throw error;
    } finally {
      this.#isRetrying = false;
    }
  }

  #lookNow(): Promise<void> {
    return this.#look.run(async () => {
      for (;;) {
        const { signal } = this.#closed;
        const told = this.#told;
        const view = await this.#deps.read(this.id, signal);
        if (signal.aborted) return;
        // What the handle said meanwhile may be younger than what was read.
        if (told !== this.#told && this.#standing) continue;
        this.#stands(view);
        return;
      }
    });
  }

  /** Takes how it stands, and tells how that differs from before. */
  #stands(view: WorkspaceView | undefined): void {
    const before = this.#standing;
    this.#standing = { view };
    if (!before) return;
    const was = before.view;
    if (!view) {
      if (was) this.#record({ t: "gone", replaced: false });
      return;
    }
    const uids = [was?.identity.sandboxUid, view.identity.sandboxUid];
    const isAnother = uids[0] !== undefined && uids[1] !== undefined && uids[0] !== uids[1];
    if (isAnother) this.#record({ t: "gone", replaced: true });
    const previous = was?.holderEpoch;
    const current = view.holderEpoch;
    if (!isAnother && previous !== undefined && current !== undefined && previous !== current) {
      this.#record({ t: "epoch_changed", previous, current });
    }
    if (!was || isAnother || !tellsTheSame(was, view)) this.#record({ t: "changed", view });
  }

  #record(event: ChronicleEvent): void {
    this.#sequence += 1;
    this.#entries.push({ sequence: this.#sequence, at: this.#deps.clock.now(), event });
    if (this.#entries.length > workspaceWatchEventsMax) this.#entries.shift();
    this.#woken.wake(true);
  }
}
