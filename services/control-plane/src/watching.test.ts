import { type HolderEpoch, readsInsteadOfListMax, workspaceWatchEventsMax } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  executionWish,
  openWish,
  patient,
  type Stage,
  settleTasks,
  silence,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import type { WatchItem } from "@holdfast/workspace";
import { beforeEach, describe, expect, it } from "vitest";
import { Watching } from "./watching.ts";

const id = workspaceId("demo");

let on: Stage;
let watching: Watching;

beforeEach(() => {
  on = stage();
  watching = new Watching(on.deps);
});

/** A watcher: what it has heard, in words. */
function watch(from?: number | "elsewhere", of = id) {
  const leaving = new AbortController();
  const items: WatchItem[] = [];
  const done = (async () => {
    try {
      for await (const item of watching.watch(of, from, leaving.signal)) items.push(item);
    } catch (error) {
      if (!leaving.signal.aborted) throw error;
    }
  })();
  return {
    items,
    words: () => items.map(wordsOf),
    last: () => items.at(-1)?.sequence ?? -1,
    leave: async () => {
      leaving.abort();
      await done;
    },
  };
}

function wordsOf(item: WatchItem): string {
  if (item.t === "gap") return "gap";
  if (item.t === "snapshot") return `snapshot ${item.view?.state ?? "absent"}`;
  const { event } = item;
  switch (event.t) {
    case "changed":
      return `changed ${event.view.state}`;
    case "progress":
      return event.step;
    case "noticed":
      return event.event.t;
    case "epoch_changed":
      return `epoch ${event.previous} → ${event.current}`;
    case "gone":
      return event.replaced ? "gone, replaced" : "gone";
  }
}

const open = (epoch?: HolderEpoch) =>
  watching.registry.open(id, epoch === undefined ? openWish : { ...openWish, fencing: { t: "epoch", epoch } }, patient);

describe("WatchWorkspace", () => {
  it("begins before the workspace exists, and tells each step of the open", async () => {
    on.cluster.habits.podsStart = false;
    const watcher = watch();
    await settleTasks();
    expect(watcher.words()).toEqual(["snapshot absent"]);
    expect(watching.registry.size).toBe(0);

    const opening = open();
    await settleTasks();
    const [pod] = on.cluster.pods(id);
    if (!pod) throw new Error("no pod");
    const shows = async (facts: Partial<typeof pod>): Promise<void> => {
      Object.assign(pod, facts);
      on.cluster.wake(id);
      await settleTasks();
    };
    await shows({ node: "node-1" });
    await shows({ phase: "Running" });
    await shows({ ready: true, ip: "10.0.0.1" });
    await opening;
    await settleTasks();
    expect(watcher.words().filter((words) => !words.startsWith("changed"))).toEqual([
      "snapshot absent",
      "created",
      "image_pulling",
      "pod_running",
      "bound",
      "probed",
    ]);
    const states = watcher.words().filter((words) => words.startsWith("changed"));
    expect(new Set(states)).toEqual(new Set(["changed starting", "changed running"]));
    expect(states.at(-1)).toBe("changed running");
    await watcher.leave();
  });

  it("tells that the guest was reached before it is asked to prove itself, each step once, fenced or not", async () => {
    for (const epoch of [undefined, 3 as HolderEpoch]) {
      on = stage();
      watching = new Watching(on.deps);
      const watcher = watch();
      await settleTasks();
      await open(epoch);
      await settleTasks();
      const steps = watcher.words().filter((words) => /^(bound|probed)$/.test(words));
      expect(steps).toEqual(["bound", "probed"]);
      await watcher.leave();
    }
  });

  it("tells no step of a start where a call looks for its guest anew", async () => {
    await open();
    const watcher = watch();
    await settleTasks();
    on.cluster.replacePod(id);
    await settleTasks();
    for await (const _ of (await watching.registry.ask(id, patient, async (workspace) => workspace)).execute(
      executionWish(),
      patient,
    ));
    await settleTasks();
    expect(watcher.words()).toContain("pod_replaced");
    expect(watcher.words().filter((words) => /^(bound|probed)$/.test(words))).toEqual([]);
    await watcher.leave();
  });

  it("tells no proof that a privileged guest did not give, where that is only reported", async () => {
    on = stage({ probe: "report" });
    watching = new Watching(on.deps);
    on.guests.shape = (script) => {
      script.probe = async () => "Uid: 0 0 0 0";
    };
    const watcher = watch();
    await settleTasks();
    await open();
    await settleTasks();
    expect(watcher.words()).toContain("bound");
    expect(watcher.words()).not.toContain("probed");
    await watcher.leave();
  });

  it("tells a fenced guest as reached though it never answers the probe", async () => {
    on.guests.shape = (script) => {
      script.probe = (within) => silence(within);
    };
    const watcher = watch();
    await settleTasks();
    await on.clock.runUntilSettled(open(3 as HolderEpoch).catch(() => undefined));
    expect(watcher.words()).toContain("bound");
    expect(watcher.words()).not.toContain("probed");
    await watcher.leave();
  });

  it("tells a suspend and a resume of this process, and the replaced pod is no event of it (L41)", async () => {
    await open();
    const watcher = watch();
    await settleTasks();
    await watching.registry.suspend(id, suspendWish, patient);
    await open();
    await settleTasks();
    const states = watcher.words().filter((words) => /snapshot|changed|replaced|gone/.test(words));
    expect(states[0]).toBe("snapshot running");
    expect(states).toEqual(expect.arrayContaining(["changed suspending", "changed suspended", "changed starting"]));
    expect(states.at(-1)).toBe("changed running");
    expect(states).not.toContain("pod_replaced");
    await watcher.leave();
  });

  it("L35 tells what others did, on a workspace that is open here and on one that is not", async () => {
    const other = workspaceId("other");
    on.cluster.seed(other);
    await open();
    const watchers = [watch(), watch(undefined, other)];
    await settleTasks();
    for (const workspace of [id, other]) {
      on.cluster.foreignFence(workspace, 7);
      await settleTasks();
      on.cluster.foreignMode(workspace, "Suspended");
      await settleTasks();
      on.cluster.foreignDelete(workspace);
      await settleTasks();
    }
    for (const watcher of watchers) {
      const words = watcher.words();
      expect(words[0]).toBe("snapshot running");
      expect(words).toEqual(expect.arrayContaining(["epoch 0 → 7", "changed suspended", "gone"]));
      expect(words.at(-1)).toBe("gone");
      await watcher.leave();
    }
    expect(watching.registry.size).toBe(0);
  });

  it("tells that another object stands under the name", async () => {
    on.cluster.seed(id);
    const watcher = watch();
    await settleTasks();
    on.cluster.foreignDelete(id);
    on.cluster.seed(id);
    await settleTasks();
    expect(watcher.words()).toContain("gone, replaced");
    expect(watcher.words().at(-1)).toBe("changed running");
    await watcher.leave();
  });

  it("L41 tells a pod that was replaced and bound again, with both identities", async () => {
    await open();
    const before = on.cluster.pods(id)[0]?.uid;
    const watcher = watch();
    await settleTasks();
    const after = on.cluster.replacePod(id).uid;
    await settleTasks();
    await watching.registry.ask(id, patient, (workspace) => workspace.viewNow(patient));
    expect(watcher.words()).toContain("changed not_ready");
    await open();
    await settleTasks();
    const item = watcher.items.find((one) => wordsOf(one) === "pod_replaced");
    expect(item).toMatchObject({ event: { event: { previous: { podUid: before }, current: { podUid: after } } } });
    await watcher.leave();
  });

  it("resumes after a cursor without a snapshot, also after the last watcher left; later with a gap", async () => {
    await open();
    const first = watch();
    await settleTasks();
    const cursor = first.last();
    await watching.registry.suspend(id, suspendWish, patient);
    await settleTasks();
    const missed = first.words().slice(1);
    expect(missed.at(-1)).toBe("changed suspended");
    await first.leave();

    const second = watch(cursor);
    await settleTasks();
    expect(second.words()).toEqual(missed);
    await second.leave();

    await on.clock.advance(60_000);
    const third = watch(cursor);
    await settleTasks();
    expect(third.words()).toEqual(["gap", "snapshot suspended"]);
    await third.leave();
    const fourth = watch("elsewhere");
    await settleTasks();
    expect(fourth.words()).toEqual(["gap", "snapshot suspended"]);
    await fourth.leave();
  });

  it("a cursor goes as far back as events are kept, and one of what has not happened yet is none", async () => {
    await open();
    const watcher = watch();
    await settleTasks();
    for (let epoch = 1; epoch <= 256; epoch += 1) {
      on.cluster.foreignFence(id, epoch);
      await settleTasks();
    }
    const last = watcher.last();
    const from = async (cursor: number) => {
      const again = watch(cursor);
      await settleTasks();
      await again.leave();
      return again.words();
    };
    const kept = await from(last - 256);
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([256, "epoch 0 → 1", "epoch 255 → 256"]);
    expect(await from(last - 1)).toEqual(["epoch 255 → 256"]);
    expect(await from(last)).toEqual([]);
    expect(await from(last - 257)).toEqual(["gap", "snapshot running"]);
    expect(await from(last + 1)).toEqual(["gap", "snapshot running"]);
    await watcher.leave();
  });

  it("a reader that is too slow costs a bounded number of events and hears a gap and a snapshot", async () => {
    await open();
    const slow = watching.watch(id, undefined, patient);
    expect((await slow.next()).value).toMatchObject({ t: "snapshot" });
    for (let epoch = 1; epoch <= workspaceWatchEventsMax + 10; epoch += 1) {
      on.cluster.foreignFence(id, epoch);
      await settleTasks();
    }
    expect((await slow.next()).value).toMatchObject({ t: "gap" });
    expect((await slow.next()).value).toMatchObject({
      t: "snapshot",
      view: { holderEpoch: workspaceWatchEventsMax + 10 },
    });
    await slow.return();
    expect(watching.watchers).toBe(0);
  });

  it("any number of watchers of one workspace share one source: no request each, one hearer of the cluster", async () => {
    await open();
    const watchers = Array.from({ length: 200 }, () => watch());
    await settleTasks();
    expect(watching.watchers).toBe(200);
    expect(on.cluster.hearers).toBe(2);
    on.cluster.plan.requests.length = 0;
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    expect(watchers.every((watcher) => watcher.words().at(-1) === "changed suspended")).toBe(true);
    expect(on.cluster.plan.requests.length).toBeLessThan(20);
    for (const watcher of watchers) await watcher.leave();
    expect(watching.watchers).toBe(0);
    await on.clock.advance(60_000);
    expect(on.clock.pending).toBe(0);
    expect(on.cluster.hearers).toBe(1);
  });

  it("what was heard and could not be read is read until it can be", async () => {
    on.cluster.seed(id);
    const watcher = watch();
    await settleTasks();
    on.cluster.plan.fail("readSandbox", "unavailable", "unavailable", "unavailable");
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    expect(watcher.words()).toEqual(["snapshot running"]);
    await on.clock.advance(5_000);
    expect(watcher.words().at(-1)).toBe("changed suspended");
    await watcher.leave();
  });

  it("fails where the first snapshot cannot be read, and leaves nothing behind", async () => {
    on.cluster.plan.fail("readSandbox", "unavailable");
    const failing = watching.watch(id, undefined, patient).next();
    await expect(failing).rejects.toBeInstanceOf(HoldfastError);
    expect(watching.watchers).toBe(0);
    await on.clock.advance(60_000);
    expect(on.clock.pending).toBe(0);
  });
});

describe("L37 handles and the watch", () => {
  it("a handle whose workspace was deleted by somebody is dropped, unasked", async () => {
    await open();
    expect(watching.registry.size).toBe(1);
    on.cluster.foreignDelete(id);
    await settleTasks();
    expect(watching.registry.size).toBe(0);
  });

  it.each([4, readsInsteadOfListMax + 8])("finds what a watch missed, with %i handles", async (count) => {
    const ids = Array.from({ length: count }, (_, index) => workspaceId(`w-${index}`));
    for (const one of ids) await watching.registry.open(one, openWish, patient);
    const [suspended, deleted] = ids;
    if (!suspended || !deleted) throw new Error("no ids");
    on.cluster.isHeard = false;
    on.cluster.foreignMode(suspended, "Suspended");
    on.cluster.foreignDelete(deleted);
    await settleTasks();
    expect(watching.registry.stateOf(suspended)).toBe("active");
    on.cluster.isHeard = true;
    on.cluster.plan.requests.length = 0;
    on.cluster.tellMissed();
    await settleTasks();
    await settleTasks();
    expect(watching.registry.stateOf(suspended)).toBe("suspended");
    expect(watching.registry.stateOf(deleted)).toBeUndefined();
    expect(watching.registry.size).toBe(count - 1);
    if (count > readsInsteadOfListMax) expect(on.cluster.plan.requests.length).toBeLessThan(12);
  });
});
