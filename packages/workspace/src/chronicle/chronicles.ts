import { Slots } from "@holdfast/async";
import { looksAtOnceMax, sandboxNameOf, type WorkspaceId, watchLingerMs } from "@holdfast/contract";
import type { HandleNews } from "../events/workspace-event.ts";
import type { Cluster, ClusterNews } from "../ports/cluster.ts";
import type { WorkspaceView } from "../view.ts";
import { Chronicle, type ChronicleDeps } from "./chronicle.ts";
import type { WatchItem } from "./chronicle-event.ts";

export interface ChroniclesDeps extends ChronicleDeps {
  readonly cluster: Pick<Cluster, "hear">;
}

/**
 * The chronicles of the workspaces that somebody watches; the others cost nothing. One begins with the first watcher, who may come before
 * the workspace exists, and ends a while after the last.
 */
export class Chronicles {
  readonly #deps: ChroniclesDeps;
  readonly #open = new Map<string, Chronicle>();
  readonly #lingering = new Map<Chronicle, () => void>();
  /** Above every number that a chronicle of this process has used. */
  #used = 0;
  #hearing: Disposable | undefined;

  constructor(deps: ChroniclesDeps) {
    // After a watch that missed something every chronicle looks: not all at once.
    const looks = new Slots(looksAtOnceMax);
    this.#deps = { ...deps, read: (id, signal) => looks.run(() => deps.read(id, signal)) };
  }

  /** How many watch. */
  get watchers(): number {
    let count = 0;
    for (const { watchers } of this.#open.values()) count += watchers;
    return count;
  }

  /** Workspaces whose events are kept. */
  get size(): number {
    return this.#open.size;
  }

  /** For handles: what one of them came to. */
  told(id: WorkspaceId, news: HandleNews, view: () => WorkspaceView): void {
    this.#open.get(sandboxNameOf(id))?.told(news, view);
  }

  /**
   * How the workspace stands, then what becomes of it. With the number of an event only what came after it, or `gap` and how it stands
   * where that is not known any more; a reader that is too slow hears `gap`, too. `elsewhere`: a number of another process.
   */
  async *watch(
    id: WorkspaceId,
    from: number | "elsewhere" | undefined,
    caller: AbortSignal,
  ): AsyncGenerator<WatchItem, void> {
    caller.throwIfAborted();
    const chronicle = this.#join(id);
    try {
      using changes = chronicle.subscribe();
      let heard = typeof from === "number" && chronicle.reaches(from) ? from : undefined;
      let missed = from !== undefined;
      for (;;) {
        if (heard === undefined || !chronicle.reaches(heard)) {
          missed ||= heard !== undefined;
          const view = await chronicle.standing(caller);
          heard = chronicle.sequence;
          const now = { at: this.#deps.clock.now(), sequence: heard };
          if (missed) yield { t: "gap", ...now };
          missed = false;
          yield { t: "snapshot", id, view, ...now };
          continue;
        }
        const entry = chronicle.after(heard);
        if (entry) {
          heard = entry.sequence;
          yield { t: "event", ...entry };
        } else await changes.next(caller);
      }
    } finally {
      this.#leave(chronicle);
    }
  }

  /** Lets every chronicle go, at the end of the process. */
  close(): void {
    for (const cancel of this.#lingering.values()) cancel();
    for (const chronicle of this.#open.values()) chronicle.close();
    this.#lingering.clear();
    this.#open.clear();
    this.#hearing?.[Symbol.dispose]();
    this.#hearing = undefined;
  }

  #join(id: WorkspaceId): Chronicle {
    // Listening begins before the first read: what happens between them is heard.
    this.#hearing ??= this.#deps.cluster.hear((news) => this.#heard(news));
    const name = sandboxNameOf(id);
    const chronicle = this.#open.get(name) ?? new Chronicle(id, this.#deps, this.#used);
    this.#open.set(name, chronicle);
    this.#lingering.get(chronicle)?.();
    this.#lingering.delete(chronicle);
    chronicle.watchers += 1;
    return chronicle;
  }

  #leave(chronicle: Chronicle): void {
    chronicle.watchers -= 1;
    if (chronicle.watchers > 0 || this.#open.get(sandboxNameOf(chronicle.id)) !== chronicle) return;
    const end = this.#deps.clock.schedule(watchLingerMs, () => this.#end(chronicle));
    this.#lingering.set(chronicle, end);
  }

  #end(chronicle: Chronicle): void {
    this.#lingering.delete(chronicle);
    this.#open.delete(sandboxNameOf(chronicle.id));
    this.#used = Math.max(this.#used, chronicle.sequence) + 1;
    chronicle.close();
    if (this.#open.size > 0) return;
    this.#hearing?.[Symbol.dispose]();
    this.#hearing = undefined;
  }

  #heard(news: ClusterNews): void {
    if (news.t !== "missed") this.#open.get(news.name)?.heard(news);
    else for (const chronicle of this.#open.values()) chronicle.heard(news);
  }
}
