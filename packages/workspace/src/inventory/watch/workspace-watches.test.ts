import { watchLingerMs, watchQueueMax } from "@holdfast/contract";
import { patient, type Stage, settleTasks, stage, workspaceId } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WatchFilter, WorkspaceNews } from "./change.ts";
import { WorkspaceWatches } from "./workspace-watches.ts";

const [a, b, c] = ["a", "b", "c"].map(workspaceId) as [never, never, never];

let on: Stage;
let watches: WorkspaceWatches;

beforeEach(() => {
  on = stage();
  watches = new WorkspaceWatches(on.deps);
});
afterEach(() => watches.close());

/** A watcher whose news are read as they come, as "added a", "bookmark", … */
class Reading implements AsyncDisposable {
  readonly heard: string[] = [];
  readonly bookmarks: string[] = [];
  error: unknown;
  readonly #gone = new AbortController();
  readonly #ended: Promise<void>;

  constructor(filter: WatchFilter = {}, from?: string) {
    this.#ended = this.#read(watches.watch(filter, from, this.#gone.signal));
  }

  /** What was heard since the last look, once nothing more comes by itself. */
  async news(): Promise<string[]> {
    for (let turn = 0; turn < 5; turn += 1) await settleTasks();
    return this.heard.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort(new Error("the reader has gone"));
    await this.#ended;
  }

  async #read(news: AsyncIterable<WorkspaceNews>): Promise<void> {
    try {
      for await (const one of news) {
        if (one.t === "bookmark") this.bookmarks.push(one.version);
        this.heard.push("workspace" in one ? `${one.t} ${one.workspace.id}` : one.t);
      }
    } catch (error) {
      this.error = error;
    }
  }
}

const asks = () => on.cluster.plan.count("listSandboxes");

describe("a watch of workspaces", () => {
  it("says everything as added and one bookmark, then changes in their order, with bookmarks between", async () => {
    on.cluster.seed(a);
    on.cluster.seed(b, { mode: "Suspended" });
    await using reader = new Reading();
    expect(await reader.news()).toEqual(["added a", "added b", "bookmark"]);
    on.cluster.foreignMode(a, "Suspended");
    expect(await reader.news()).toEqual(["changed a", "bookmark"]);
    on.cluster.seed(c);
    on.cluster.foreignDelete(b);
    on.cluster.foreignMode(a, "Running");
    expect(await reader.news()).toEqual(["added c", "removed b", "changed a", "bookmark"]);
  });

  it("says nothing of a change that no caller can see", async () => {
    on.cluster.seed(a);
    await using reader = new Reading();
    await reader.news();
    on.cluster.watches.stands({ ...on.cluster.stored(a), generation: 99 }, false);
    expect(await reader.news()).toEqual([]);
    on.cluster.watches.bookmark();
    expect(await reader.news()).toEqual(["bookmark"]);
  });

  it("leaves out what is no workspace, and removes one that ceases to be one", async () => {
    on.cluster.seed(a, { template: undefined });
    on.cluster.seed(b);
    await using reader = new Reading();
    expect(await reader.news()).toEqual(["added b", "bookmark"]);
    on.cluster.watches.stands({ ...on.cluster.stored(b), template: undefined }, false);
    expect(await reader.news()).toEqual(["removed b", "bookmark"]);
  });

  it("hears of what enters its filter as added, and of what leaves it as removed", async () => {
    on.cluster.seed(workspaceId("x-1"), { template: "big" });
    on.cluster.seed(workspaceId("x-2"), { template: "small" });
    on.cluster.seed(workspaceId("y-1"), { template: "big" });
    await using reader = new Reading({ template: "big", idPrefix: "x-" });
    expect(await reader.news()).toEqual(["added x-1", "bookmark"]);
    on.cluster.watches.stands({ ...on.cluster.stored(workspaceId("x-2")), template: "big" }, false);
    on.cluster.watches.stands({ ...on.cluster.stored(workspaceId("x-1")), template: "small" }, false);
    on.cluster.foreignMode(workspaceId("y-1"), "Suspended");
    expect(await reader.news()).toEqual(["added x-2", "removed x-1", "bookmark"]);
  });

  it("asks the cluster once for any number of watchers, and stops a while after the last", async () => {
    on.cluster.seed(a);
    const readers = Array.from({ length: 100 }, () => new Reading());
    for (const reader of readers) expect(await reader.news()).toEqual(["added a", "bookmark"]);
    expect([asks(), on.cluster.watches.asked.length, watches.size]).toEqual([1, 1, 100]);
    for (const reader of readers) await reader[Symbol.asyncDispose]();
    expect([watches.size, on.cluster.watches.open, watches.isWatching]).toEqual([0, 1, true]);
    await on.clock.advance(watchLingerMs);
    expect([on.cluster.watches.open, watches.isWatching, on.clock.pending]).toEqual([0, false, 0]);
  });

  it("B51 leaves nothing of 5,000 watchers that go at once, and lists no more for them", async () => {
    on.cluster.seed(a);
    await using stays = new Reading();
    await stays.news();
    for (let round = 0; round < 5_000; round += 1) {
      const gone = new AbortController();
      const news = watches.watch({}, undefined, gone.signal);
      const first = news.next();
      if (round % 2 === 0) await first;
      gone.abort();
      await news.return(undefined);
      await first.catch(() => undefined);
    }
    expect([watches.size, asks(), on.cluster.watches.asked.length]).toEqual([1, 1, 1]);
    on.cluster.foreignMode(a, "Suspended");
    expect(await stays.news()).toEqual(["changed a", "bookmark"]);
  });

  it("B51 lists once for watchers that go before the list has come", async () => {
    const gate = on.cluster.plan.hold("listSandboxes");
    for (let round = 0; round < 100; round += 1) {
      const gone = new AbortController();
      const first = watches.watch({}, undefined, gone.signal).next();
      await settleTasks();
      gone.abort(new Error("gone"));
      await expect(first).rejects.toThrow("gone");
    }
    expect([watches.size, asks()]).toEqual([0, 1]);
    gate.release();
    await using reader = new Reading();
    expect(await reader.news()).toEqual(["bookmark"]);
    expect(asks()).toBe(1);
  });

  it("fails with the cluster's own refusal while nothing was ever listed, and asks no more when nobody is left", async () => {
    on.cluster.plan.fail("listSandboxes", "forbidden");
    await using reader = new Reading();
    await reader.news();
    expect(reader.error).toMatchObject({ reason: "CLUSTER_FORBIDDEN" });
    await on.clock.advance(60_000);
    expect([asks(), watches.isWatching]).toEqual([1, false]);
  });

  it("ends by name when the service stops", async () => {
    await using reader = new Reading();
    await reader.news();
    await watches.close();
    await reader.news();
    expect(reader.error).toMatchObject({ reason: "SERVICE_DRAINING" });
    await expect(watches.watch({}, undefined, patient).next()).rejects.toMatchObject({ reason: "SERVICE_DRAINING" });
  });
});

describe("a slow reader", () => {
  it("is not waited for: what it leaves unread is bounded, and then it hears everything anew", async () => {
    on.cluster.seed(a);
    on.cluster.seed(b);
    const slow = watches.watch({}, undefined, patient);
    await using quick = new Reading();
    expect((await slow.next()).value).toMatchObject({ t: "added" });
    await quick.news();
    for (let change = 0; change <= watchQueueMax; change += 1) {
      on.cluster.foreignMode(a, change % 2 === 0 ? "Suspended" : "Running");
      if (change === 10) on.cluster.foreignDelete(b);
      if (change % 100 === 0) await quick.news();
    }
    const heard: unknown[] = [];
    for (let news = await slow.next(); !news.done; news = await slow.next()) {
      heard.push("workspace" in news.value ? `${news.value.t} ${news.value.workspace.id}` : news.value.t);
      if (heard.length === 5) break;
    }
    // The rest of what it had begun with, then all that stands now: b is not said again, so it is gone.
    expect(heard).toEqual(["added b", "bookmark", "restarted", "added a", "bookmark"]);
    await slow.return(undefined);
    expect(watches.size).toBe(1);
  });

  it("misses nothing while it stays within the bound", async () => {
    on.cluster.seed(a);
    const slow = watches.watch({}, undefined, patient);
    await slow.next();
    for (let change = 0; change < watchQueueMax; change += 1) {
      on.cluster.foreignMode(a, change % 2 === 0 ? "Suspended" : "Running");
    }
    await slow.next();
    for (let change = 0; change < watchQueueMax; change += 1) {
      expect((await slow.next()).value).toMatchObject({
        t: "changed",
        workspace: { mode: change % 2 === 0 ? "Suspended" : "Running" },
      });
    }
    expect((await slow.next()).value).toMatchObject({ t: "bookmark" });
    await slow.return(undefined);
  });
});

describe("a watch that is resumed", () => {
  /** Hears all there is, goes, and leaves its bookmark. */
  async function bookmarkNow(): Promise<string> {
    await using reader = new Reading();
    await reader.news();
    return reader.bookmarks.at(-1) ?? "";
  }

  it("hears only what came after its bookmark, without a request, while that is remembered here", async () => {
    on.cluster.seed(a);
    on.cluster.seed(b);
    await using stays = new Reading();
    const bookmark = await bookmarkNow();
    await using same = new Reading({}, bookmark);
    expect(await same.news()).toEqual([]);
    on.cluster.foreignMode(a, "Suspended");
    on.cluster.foreignDelete(b);
    on.cluster.seed(c);
    await stays.news();
    await using reader = new Reading({}, bookmark);
    expect(await reader.news()).toEqual(["changed a", "removed b", "added c", "bookmark"]);
    on.cluster.foreignMode(c, "Suspended");
    expect(await reader.news()).toEqual(["changed c", "bookmark"]);
    expect([asks(), on.cluster.watches.asked.length]).toEqual([1, 1]);
  });

  it("hears what came while no process of the service watched, from the cluster", async () => {
    on.cluster.seed(a);
    on.cluster.seed(b);
    const bookmark = await bookmarkNow();
    await on.clock.advance(watchLingerMs);
    on.cluster.foreignDelete(b);
    on.cluster.seed(c);
    on.cluster.foreignMode(a, "Suspended");
    await using reader = new Reading({}, bookmark);
    expect(await reader.news()).toEqual(["removed b", "added c", "changed a", "bookmark"]);
    on.cluster.foreignMode(a, "Running");
    expect(await reader.news()).toEqual(["changed a", "bookmark"]);
    // One list for the cache, and one watch: it began at the bookmark.
    expect([asks(), on.cluster.watches.asked]).toEqual([2, expect.arrayContaining([bookmark])]);
  });

  it("takes the one watch back for many at once, and whoever is ahead hears nothing twice", async () => {
    on.cluster.seed(a);
    const bookmark = await bookmarkNow();
    await on.clock.advance(watchLingerMs);
    on.cluster.foreignMode(a, "Suspended");
    await using ahead = new Reading();
    expect(await ahead.news()).toEqual(["added a", "bookmark"]);
    const late = Array.from({ length: 50 }, () => new Reading({}, bookmark));
    await settleTasks();
    await on.clock.advance(2_000);
    for (const reader of late) expect(await reader.news()).toEqual(["changed a", "bookmark"]);
    on.cluster.foreignMode(a, "Running");
    for (const reader of [ahead, ...late]) expect(await reader.news()).toEqual(["changed a", "bookmark"]);
    expect(on.cluster.watches.asked).toHaveLength(3);
    for (const reader of late) await reader[Symbol.asyncDispose]();
  });

  it("B84 starts anew where the cluster has forgotten what came after its bookmark, and says so; nobody else notices", async () => {
    on.cluster.seed(a);
    on.cluster.seed(b);
    const bookmark = await bookmarkNow();
    await on.clock.advance(watchLingerMs);
    on.cluster.foreignDelete(b);
    on.cluster.watches.forget();
    await using other = new Reading();
    expect(await other.news()).toEqual(["added a", "bookmark"]);
    await using reader = new Reading({}, bookmark);
    await settleTasks();
    await on.clock.advance(2_000);
    expect(await reader.news()).toEqual(["restarted", "added a", "bookmark"]);
    expect(await other.news()).toEqual([]);
    on.cluster.seed(c);
    for (const one of [reader, other]) expect(await one.news()).toEqual(["added c", "bookmark"]);
  });

  it("B84 starts anew where the cluster says so in the stream, too", async () => {
    on.cluster.seed(a);
    const bookmark = await bookmarkNow();
    await on.clock.advance(watchLingerMs);
    on.cluster.foreignMode(a, "Suspended");
    on.cluster.watches.refusals.push("expired in stream");
    await using reader = new Reading({}, bookmark);
    expect(await reader.news()).toEqual(["restarted", "added a", "bookmark"]);
    on.cluster.foreignMode(a, "Running");
    expect(await reader.news()).toEqual(["changed a", "bookmark"]);
  });

  it("goes on with a bookmark that is honoured though an older one beside it is not", async () => {
    on.cluster.seed(a);
    const older = await bookmarkNow();
    await on.clock.advance(watchLingerMs);
    on.cluster.foreignMode(a, "Suspended");
    on.cluster.watches.forget();
    const newer = await bookmarkNow();
    await on.clock.advance(watchLingerMs);
    on.cluster.foreignMode(a, "Running");
    await using tooOld = new Reading({}, older);
    await using honoured = new Reading({}, newer);
    expect(await tooOld.news()).toEqual(["restarted", "added a", "bookmark"]);
    await on.clock.advance(3_000);
    expect(await honoured.news()).toEqual(["changed a", "bookmark"]);
    on.cluster.seed(b);
    for (const reader of [tooOld, honoured]) expect(await reader.news()).toEqual(["added b", "bookmark"]);
  });

  it("starts anew with a bookmark of a time to which the cluster never came, and waits with one that it has come to", async () => {
    on.cluster.seed(a);
    await using stays = new Reading();
    await stays.news();
    await using never = new Reading({}, "999999999");
    await using strange = new Reading({}, "not-a-version");
    for (const reader of [never, strange]) expect(await reader.news()).toEqual(["restarted", "added a", "bookmark"]);
    on.cluster.watches.unheard(() => on.cluster.watches.bookmark());
    await using ahead = new Reading({}, on.cluster.watches.version);
    expect(await ahead.news()).toEqual([]);
    on.cluster.foreignMode(a, "Suspended");
    expect(await ahead.news()).toEqual(["changed a", "bookmark"]);
  });
});

describe("B84 a watch that breaks off", () => {
  it("goes on where it was, without a list, when the server ends it", async () => {
    on.cluster.seed(a);
    await using reader = new Reading();
    await reader.news();
    on.cluster.watches.unheard(() => on.cluster.foreignMode(a, "Suspended"));
    on.cluster.watches.cut();
    await on.clock.advance(5_000);
    expect(await reader.news()).toEqual(["changed a", "bookmark"]);
    expect(asks()).toBe(1);
  });

  it.each(["in the stream", "as HTTP status"])(
    "leaves no ghost after a 410 %s: what vanished is removed",
    async (how) => {
      for (const id of [a, b]) on.cluster.seed(id);
      await using reader = new Reading();
      await reader.news();
      on.cluster.watches.unheard(() => {
        on.cluster.foreignDelete(a);
        on.cluster.foreignDelete(b);
        on.cluster.seed(b); // Another one of the same name.
        on.cluster.seed(c);
      });
      if (how === "in the stream") on.cluster.watches.forget();
      else {
        on.cluster.watches.refusals.push("expired");
        on.cluster.watches.cut();
      }
      await on.clock.advance(10_000);
      expect(await reader.news()).toEqual(["removed a", "removed b", "added b", "added c", "bookmark"]);
      expect(asks()).toBe(2);
      const bookmark = reader.bookmarks[0];
      await using resumed = new Reading({}, bookmark);
      expect(await resumed.news()).toEqual(["removed a", "removed b", "added b", "added c", "bookmark"]);
    },
  );

  it("asks a server in trouble at most twice a second, and says the trouble once", async () => {
    on.cluster.seed(a);
    await using reader = new Reading();
    await reader.news();
    on.cluster.watches.refusals.push(...Array.from({ length: 50 }, () => "broken" as const));
    on.cluster.watches.cut();
    const before = on.cluster.watches.asked.length;
    await on.clock.advance(60_000);
    expect(on.cluster.watches.asked.length - before).toBeLessThanOrEqual(30);
    expect(on.logged.filter(({ level }) => level === "warn")).toHaveLength(1);
    await on.clock.advance(300_000);
    on.cluster.foreignMode(a, "Suspended");
    expect(await reader.news()).toContain("changed a");
  });
});
