import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { judge } from "./judge/judge.ts";
import { Play } from "./play.ts";
import { type ForeignDeed, themes } from "./steps.ts";
import { Tally } from "./tally.ts";
import type { CallRecord, Verb } from "./world/calls.ts";
import { annotationOf, modeOf, storedEpochOf } from "./world/facts.ts";
import { World } from "./world/world.ts";

/** Callers 1 and 2 come with epochs 2 and 5; caller 0 with none, until it takes over. */
const [theme] = themes;
let world: World;
let play: Play;

beforeEach(async () => {
  if (!theme) expect.unreachable();
  world = await World.start();
  play = new Play(world, theme, new Tally());
});

afterEach(async () => {
  try {
    await play.heal();
    expect(judge(world)).toEqual([]);
  } finally {
    await world.stop();
  }
});

const pass = (ms: number) => play.step({ t: "pass", ms });
const foreign = (deed: ForeignDeed) => play.step({ t: "foreign", deed });

async function call(verb: Verb, caller: number, replica: number): Promise<CallRecord> {
  const who = { caller, replica, ignoresFence: false, leavesOnFailure: false, goesAfterMs: undefined };
  await play.step({ t: "call", verb, ...who });
  return world.calls.at(-1) ?? expect.unreachable();
}

/** Lets time pass until it is answered, and says how. */
async function answerOf(record: CallRecord): Promise<string> {
  for (let tries = 0; record.answer === undefined && tries < 200; tries += 1) await pass(500);
  const { answer } = record;
  return answer?.t === "error" ? answer.reason : (answer?.state ?? answer?.t ?? "unanswered");
}

const done = async (verb: Verb, caller: number, replica: number) => await answerOf(await call(verb, caller, replica));
const mode = () => modeOf(world.history.now().sandbox);
const podUid = () => world.history.now().pods[0]?.metadata.uid;

describe("a suspend on one replica and a resume on the other", () => {
  it("leave the first with nothing false: it suspends again what runs, and its commands reach the pod that stands", async () => {
    expect(await done("open", 0, 0)).toBe("running");
    expect(await done("suspend", 0, 0)).toBe("suspended");
    expect(await done("resume", 0, 1)).toBe("running");
    expect(await done("suspend", 0, 0)).toBe("suspended");
    expect([mode(), podUid()]).toEqual(["Suspended", undefined]);
    expect(await done("resume", 0, 1)).toBe("running");
    expect(await done("execute", 0, 0)).toBe("ok");
  });
});

describe("a DELETE that lands 20 s late", () => {
  it("L24, L34 deletes nothing of what another holder has taken over meanwhile", async () => {
    await done("open", 1, 0);
    world.cluster.faults.add({
      match: { verb: "delete", resource: "sandboxes", by: "replica-0" },
      action: { t: "applyLate", ms: 20_000, loss: "timeout" },
    });
    const deleting = await call("delete", 1, 0);
    await pass(50);
    expect(await done("take_over", 0, 1)).toBe("running");
    expect(await answerOf(deleting)).toBe("HOLDER_EPOCH_SUPERSEDED");
    await pass(130_000);
    expect([mode(), storedEpochOf(world.history.now().sandbox)]).toEqual(["Running", 3]);
    expect(await done("execute", 0, 1)).toBe("ok");
  });
});

describe("a clean-up after somebody else adopted", () => {
  it("L19 is none: who adopted waits for the very pod, and gets it", async () => {
    await play.step({ t: "node_habit", works: false });
    const opening = await call("open", 1, 0);
    await pass(11_000);
    const adopting = await call("open", 2, 1);
    expect(await answerOf(opening)).toBe("START_TIMEOUT");
    expect(mode()).toBe("Running");
    await play.step({ t: "node_habit", works: true });
    expect(await answerOf(adopting)).toBe("running");
  });
});

describe("two wakes in one millisecond, and a clock that steps back", () => {
  it("end with one pod, and with stamps that only grow", async () => {
    await done("open", 0, 0);
    await done("suspend", 0, 0);
    await play.step({ t: "clock_back", ms: 60_000 });
    const wakes = [await call("resume", 0, 0), await call("resume", 0, 1)];
    for (const wake of wakes) expect(await answerOf(wake)).toBe("running");
    await done("suspend", 0, 1);
    const stamps = world.history
      .all()
      .flatMap(({ sandbox }) => annotationOf(sandbox, "sandbox.namzu.ai/operating-mode-changed-at") ?? []);
    expect(new Set(stamps).size).toBe(3);
    expect([...stamps].sort()).toEqual(stamps);
  });
});

describe("a take-over between the object's read and the pod's read of another replica", () => {
  it("L17 is what the next pod's guest is told: the one who lost it starts nothing there", async () => {
    await done("open", 1, 1);
    const pods = world.cluster.faults.hold({ verb: "list", resource: "pods", by: "replica-0" });
    const executing = await call("execute", 1, 0);
    await pods.reached;
    expect(await done("take_over", 0, 1)).toBe("running");
    const before = podUid();
    await foreign("drain_pod");
    await pass(1_000);
    expect(podUid()).not.toBe(before);
    pods.pass();
    expect(await answerOf(executing)).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect(world.guests.epochOf(podUid() ?? "")).toBe(3);
  });
});

describe("a suspend's patch beaten by another suspend and a resume", () => {
  it("L24 is decided again: the pod that stands by then is flushed before it is stopped", async () => {
    await done("open", 0, 0);
    const patch = world.cluster.faults.hold({ verb: "patch", resource: "sandboxes", by: "replica-0" });
    const suspending = await call("suspend", 0, 0);
    await patch.reached;
    expect(await done("suspend", 0, 1)).toBe("suspended");
    expect(await done("resume", 0, 1)).toBe("running");
    const next = podUid();
    patch.pass();
    expect(await answerOf(suspending)).toBe("suspended");
    expect(world.guests.effects.filter(({ verb, pod }) => verb === "flush" && pod === next)).toHaveLength(1);
  });
});

describe("a suspend undone before the controller looked", () => {
  it("L25 is SUSPEND_OVERTAKEN, and L15 the pod that was never stopped is used again", async () => {
    await done("open", 0, 0);
    const pod = podUid();
    await world.cluster.killController();
    const suspending = await call("suspend", 0, 0);
    await pass(50);
    expect(mode()).toBe("Suspended");
    await foreign("wake");
    await world.cluster.startController();
    expect(await answerOf(suspending)).toBe("SUSPEND_OVERTAKEN");
    expect(await done("execute", 0, 0)).toBe("ok");
    expect(podUid()).toBe(pod);
  });
});

describe("a POST that lands after its deadline", () => {
  it("L14 is adopted by whoever takes it over, who keeps it", async () => {
    const post = world.cluster.faults.add({
      match: { verb: "create", resource: "sandboxes", by: "replica-0" },
      action: { t: "applyLate", ms: 25_000, loss: "timeout" },
    });
    expect(await done("open", 1, 0)).toBe("CLUSTER_UNAVAILABLE");
    expect(mode()).toBeUndefined();
    for (let tries = 0; mode() === undefined && tries < 60; tries += 1) await pass(1_000);
    post.remove();
    expect(storedEpochOf(world.history.now().sandbox)).toBe(2);
    expect(await done("take_over", 0, 1)).toBe("running");
    await pass(130_000);
    expect([mode(), storedEpochOf(world.history.now().sandbox)]).toEqual(["Running", 3]);
  });
});
