import {
  executionWish,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");

let on: Stage;
let workspace: Workspace;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  on.cluster.hear((news) => void workspace.heard(news));
  await workspace.open(openWish, patient);
  await settleTasks();
  on.cluster.plan.requests.length = 0;
});

const reads = () => on.cluster.plan.requests;
const pod = () => {
  const [first] = on.cluster.pods(id);
  if (!first) throw new Error("no pod");
  return first;
};

describe("L37 what the watch says reaches a handle unasked", () => {
  it("a foreign suspend makes it suspending, and suspended once its pod has been seen gone", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    expect(workspace.state.t).toBe("suspending");
    on.cluster.endPods(id);
    await settleTasks();
    expect(workspace.state.t).toBe("suspended");
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("a foreign suspend releases terminals without waiting for them", async () => {
    let released = 0;
    on = stage();
    on.cluster.habits.podsEnd = false;
    on.guests.shape = (script) => {
      const { health } = script;
      script.health = async (within) => ({ ...(await health(within)), features: ["executions", "probe", "sessions"] });
      script.releaseSessions = () => {
        released += 1;
        return new Promise(() => undefined);
      };
    };
    workspace = new Workspace(id, on.deps);
    on.cluster.hear((news) => void workspace.heard(news));
    await workspace.open(openWish, patient);
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    expect(released).toBe(1);
    expect(workspace.state.t).toBe("suspending");
  });

  it("a foreign delete makes it gone; a delete that goes on makes it deleting", async () => {
    on.cluster.stored(id).deleting = true;
    on.cluster.wake(id);
    await settleTasks();
    expect(workspace.state.t).toBe("deleting");
    on.cluster.foreignDelete(id);
    await settleTasks();
    expect(workspace.state).toEqual({ t: "gone", why: "absent" });
  });

  it("a pod that is replaced makes it unbound, and it is bound again only when somebody calls", async () => {
    on.cluster.replacePod(id);
    await settleTasks();
    expect(workspace.state.t).toBe("unbound");
    const dials = on.guests.calls.length;
    on.cluster.wake(id);
    await settleTasks();
    expect(on.guests.calls.length).toBe(dials);
    on.guests.agent(pod().uid).execute = async function* () {};
    for await (const _ of workspace.execute(executionWish(), patient));
    expect(workspace.state.t).toBe("active");
  });

  it("L41 a container that restarted is told, with both processes", async () => {
    using events = workspace.events.subscribe();
    const { health } = on.guests.agent(pod().uid);
    on.guests.agent(pod().uid).health = async (within) => ({ ...(await health(within)), bootId: "later" as never });
    pod().restartCount = 1;
    on.cluster.wake(id);
    const heard = await events.next(patient);
    expect(heard).toMatchObject({
      event: { t: "container_restarted", previous: { podUid: pod().uid }, current: { bootId: "later" } },
    });
  });

  it("only wakes a decision, which reads: late news that no longer holds changes nothing", async () => {
    const look = on.cluster.plan.hold("readSandbox");
    const { name, uid } = on.cluster.stored(id);
    void workspace.heard({
      t: "sandbox",
      name,
      uid,
      mode: "Suspended",
      deleting: false,
      holderEpoch: undefined,
      happened: "modified",
    });
    await look.reached;
    expect(workspace.state.t).toBe("active");
    look.release();
    await settleTasks();
    expect(workspace.state.t).toBe("active");
  });

  it("B69 news that contradicts nothing, and news about a pod that is not held any more, costs no request", async () => {
    on.cluster.wake(id);
    const { name } = on.cluster.stored(id);
    const old = { ...pod(), uid: "another" as never, waits: false };
    expect(workspace.heard({ t: "pod", name, pod: old, gone: true })).toBeUndefined();
    await settleTasks();
    expect(reads()).toEqual([]);
    expect(workspace.state.t).toBe("active");
  });

  it("B69 late news of the pod before leaves calls where they go: to the pod that is held now", async () => {
    const first = { ...pod(), waits: false };
    on.cluster.replacePod(id);
    await settleTasks();
    const second = pod();
    const runs = async () => {
      on.guests.agent(second.uid).execute = async function* () {};
      for await (const _ of workspace.execute(executionWish(), patient));
      return on.guests.calls.at(-1)?.pod;
    };
    expect(await runs()).toBe(second.uid);
    const { name } = on.cluster.stored(id);
    on.cluster.plan.requests.length = 0;
    for (const news of [
      { t: "pod", name, pod: first, gone: true },
      { t: "pod", name, pod: { ...first, ready: false }, gone: false },
      { t: "pod", name, pod: { ...first, phase: "Failed" }, gone: false },
    ] as const) {
      await workspace.heard(news);
      expect([workspace.state.t, workspace.view().identity.podUid]).toEqual(["active", second.uid]);
      expect(await runs()).toBe(second.uid);
    }
    expect(reads()).toEqual([]);
  });

  it("news of this handle's own suspend and wake costs no read beyond theirs", async () => {
    await workspace.suspend(suspendWish, patient);
    await workspace.open(openWish, patient);
    await settleTasks();
    expect(workspace.state.t).toBe("active");
    const before = reads().length;
    on.cluster.wake(id);
    await settleTasks();
    expect(reads().length).toBe(before);
  });

  it("what came while a recipe ran is looked at once it is over: what the recipe had read may be older", async () => {
    on = stage();
    let asked: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => {
      asked = resolve;
    });
    let answer: () => void = () => undefined;
    on.guests.shape = (script) => {
      const { health } = script;
      script.health = async (within) => {
        const seen = await health(within);
        asked();
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
        return seen;
      };
    };
    workspace = new Workspace(id, on.deps);
    on.cluster.hear((news) => void workspace.heard(news));
    const opening = workspace.open(openWish, patient);
    await reached;
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    const during = reads().length;
    expect(workspace.state.t).toBe("opening");
    answer();
    await opening.catch(() => undefined);
    await settleTasks();
    expect(workspace.state.t).toBe("suspending");
    expect(reads().length).toBeGreaterThan(during);
  });

  it("costs no request while a recipe runs, which looks for itself", async () => {
    on.cluster.habits.podsEnd = false;
    const writing = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(suspendWish, patient);
    await writing.reached;
    const before = reads().length;
    Object.assign(pod(), { phase: "Failed", ready: false });
    on.cluster.wake(id);
    await settleTasks();
    expect(reads().length).toBe(before);
    writing.release();
    await suspending;
  });

  it("a pod that ended and still stands ends a foreign suspend, too", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    expect(workspace.state.t).toBe("suspending");
    Object.assign(pod(), { phase: "Succeeded", ready: false });
    const { name } = on.cluster.stored(id);
    void workspace.heard({ t: "pod", name, pod: { ...pod(), waits: false }, gone: false });
    await settleTasks();
    expect(workspace.state.t).toBe("suspended");
  });

  it("is nobody's business once the workspace is gone: another of its name costs no request", async () => {
    await workspace.destroy({ ...suspendWish, deleteDisk: true }, patient);
    expect(workspace.state.t).toBe("gone");
    await settleTasks();
    const before = reads().length;
    on.cluster.seed(id);
    on.cluster.replacePod(id);
    await settleTasks();
    expect(reads().length).toBe(before);
  });

  it("a read that fails shows nothing, and is made again until it shows something; then no timer is left", async () => {
    on.cluster.plan.fail("readSandbox", "unavailable", "unavailable");
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    expect(workspace.state.t).toBe("active");
    await on.clock.advance(2_000);
    expect(workspace.state.t).toBe("suspended");
    expect(on.clock.pending).toBe(0);
  });

  it("a handle that was let go looks no more", async () => {
    on.cluster.plan.fail("readSandbox", "unavailable");
    on.cluster.foreignMode(id, "Suspended");
    await settleTasks();
    workspace.close();
    await settleTasks();
    expect(on.clock.pending).toBe(0);
  });
});
