import {
  collect,
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
import type { EventSubscription } from "../events/workspace-events.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const resumeWish = { readyTimeoutMs: 60_000 };
let on: Stage;
let workspace: Workspace;
let heard: EventSubscription;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  heard = workspace.events.subscribe();
  on.cluster.plan.requests.length = 0;
});

const run = () => collect(workspace.execute(executionWish(), patient));
const pod = () => {
  const [first] = on.cluster.pods(id);
  if (!first) throw new Error("no pod stands");
  return first;
};
const agent = () => on.guests.agent(pod().uid);
const current = () => workspace.view().identity;

/** All that stands in the queue now. */
async function events() {
  const all = [];
  for (;;) {
    const over = new AbortController();
    const next = heard.next(over.signal).catch(() => undefined);
    await settleTasks();
    over.abort(new Error("nothing stands"));
    const one = await next;
    if (!one) return all;
    all.push(one.t === "event" ? one.event : one);
  }
}

/** The agent's process is another one, as after its container was started anew. */
function restartAgent(bootId: string): void {
  agent().health = async () => ({
    serving: true,
    protocolVersion: 1,
    features: ["executions"],
    bootId: bootId as never,
  });
  agent().execute = async function* ({ executionId }) {
    yield { t: "started", executionId, bootId: bootId as never, attached: false };
  };
}

describe("L41 a pod that was replaced", () => {
  it("is told once, with both identities, before the call that noticed returns; the call succeeds, nothing is patched", async () => {
    const before = current();
    const next = on.cluster.replacePod(id);
    const calls = workspace.execute(executionWish(), patient);
    await calls.next();
    expect(await events()).toEqual([
      {
        t: "pod_replaced",
        sandboxUid: before.sandboxUid,
        previous: { podUid: before.podUid, bootId: before.bootId },
        current: { podUid: next.uid, bootId: `boot-of-${next.uid}` },
      },
    ]);
    expect(current()).toEqual({ ...before, podUid: next.uid, bootId: `boot-of-${next.uid}` });
    await collect(calls);
    await run();
    expect(await events()).toEqual([]);
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("is told once for calls that were refused together: one shared look, all succeed", async () => {
    on.cluster.replacePod(id);
    const look = on.cluster.plan.hold("readSandbox");
    const calls = [run(), run(), run()];
    await look.reached;
    look.release();
    expect((await Promise.all(calls)).map((all) => all.length)).toEqual([3, 3, 3]);
    expect(await events()).toHaveLength(1);
  });

  it("by this handle's own suspend and resume is not told", async () => {
    await workspace.suspend(suspendWish, patient);
    await workspace.resume(resumeWish, patient);
    expect(await events()).toEqual([]);
  });

  it("by somebody else's suspend and this handle's resume is not told either: it was asked for", async () => {
    on.cluster.foreignMode(id, "Suspended");
    await run().catch(() => undefined);
    await workspace.resume(resumeWish, patient);
    expect(await events()).toEqual([]);
  });

  it("by somebody else's suspend and resume is told at the next start here", async () => {
    const before = current();
    on.cluster.foreignMode(id, "Suspended");
    on.cluster.foreignMode(id, "Running");
    await workspace.resume(resumeWish, patient);
    expect(await events()).toMatchObject([
      { t: "pod_replaced", previous: { podUid: before.podUid }, current: { podUid: pod().uid } },
    ]);
  });

  it("before its probe during a resume: completes on the third pod, with one event naming second and third", async () => {
    await workspace.suspend(suspendWish, patient);
    let second: string | undefined;
    on.guests.shape = (script, uid) => {
      if (second !== undefined) return;
      second = uid;
      script.unreached = "no-connection";
    };
    const resuming = workspace.resume(resumeWish, patient);
    await settleTasks();
    const third = on.cluster.replacePod(id);
    expect((await on.clock.runUntilSettled(resuming)).identity.podUid).toBe(third.uid);
    expect(await events()).toMatchObject([
      { t: "pod_replaced", previous: { podUid: second, bootId: undefined }, current: { podUid: third.uid } },
    ]);
  });
});

describe("L41 a container that was restarted", () => {
  it("is told once, with both boot ids and the same pod; the call succeeds", async () => {
    const { podUid, bootId } = current();
    restartAgent("second");
    expect(await run()).toHaveLength(1);
    await run();
    expect(await events()).toMatchObject([
      { t: "container_restarted", previous: { podUid, bootId }, current: { podUid, bootId: "second" } },
    ]);
    expect(current().bootId).toBe("second");
  });

  it("stands in the queue before the call hears that its command started", async () => {
    restartAgent("second");
    await workspace.execute(executionWish(), patient).next();
    expect(await events()).toHaveLength(1);
  });

  it("is not told to who has left, nor made up where a guest names no boot id", async () => {
    heard[Symbol.dispose]();
    restartAgent("second");
    await run();
    expect(await events()).toEqual([]);
    on = stage();
    on.guests.shape = (script) => {
      const { health } = script;
      script.health = async (within) => ({ ...(await health(within)), bootId: "" as never });
      script.execute = async function* ({ executionId }) {
        yield { t: "started", executionId, bootId: "" as never, attached: false };
      };
    };
    workspace = new Workspace(id, on.deps);
    await workspace.open(openWish, patient);
    heard = workspace.events.subscribe();
    expect(await run()).toHaveLength(1);
    expect(await events()).toEqual([]);
  });
});

describe("L40 identity", () => {
  it("shows no boot id of a pod that was left: replies of it change nothing", async () => {
    let answer: (() => void) | undefined;
    const late = new Promise<void>((resolve) => {
      answer = resolve;
    });
    agent().execute = async function* ({ executionId }) {
      await late;
      yield { t: "started", executionId, bootId: "of-the-old-pod" as never, attached: false };
    };
    const slow = run();
    await settleTasks();
    const next = on.cluster.replacePod(id);
    await run();
    answer?.();
    await slow;
    expect(current()).toMatchObject({ podUid: next.uid, bootId: `boot-of-${next.uid}` });
    expect(await events()).toHaveLength(1);
  });
});

describe("L35 refresh", () => {
  it("takes in a foreign suspend, so that the next suspend is sent and waits again", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    expect(await workspace.refresh(patient)).toMatchObject({ state: "suspending" });
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    expect(on.cluster.plan.writes).toEqual(["setMode"]);
    on.cluster.endPods(id);
    expect((await suspending).view.state).toBe("suspended");
  });

  it("looks anew for who asks while a look runs that began before", async () => {
    const held = on.cluster.plan.hold("readSandbox");
    const first = workspace.refresh(patient);
    await held.reached;
    const second = workspace.refresh(patient);
    held.release();
    await Promise.all([first, second]);
    expect(on.cluster.plan.count("readSandbox")).toBe(2);
  });

  it("changes nothing where nothing can be read, and binds nothing by itself", async () => {
    on.cluster.plan.fail("readSandbox", "unavailable");
    expect(await workspace.refresh(patient)).toBeUndefined(); // Nothing is said of what could not be looked at.
    expect(workspace.state.t).toBe("active");
    await workspace.suspend(suspendWish, patient);
    on.cluster.foreignMode(id, "Running");
    on.guests.calls.length = 0;
    await workspace.refresh(patient);
    expect(on.guests.calls).toEqual([]);
  });
});
