import { HoldfastError } from "@holdfast/errors";
import {
  openWish,
  patient,
  type Stage,
  settleTasks,
  silence,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const order = { graceMs: undefined, holdMs: undefined };
let on: Stage;
let workspace: Workspace;

async function openWith(features: readonly string[]) {
  on = stage();
  on.guests.shape = (script) => {
    const { health } = script;
    script.health = async (within) => ({ ...(await health(within)), features });
  };
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  on.cluster.plan.requests.length = 0;
  on.guests.calls.length = 0;
}

beforeEach(() => openWith(["executions", "holder-epoch", "probe", "quiesce", "flush"]));

const disk = () => workspace.diskUnder(undefined);
const agent = () => on.guests.agent(on.cluster.pods(id)[0]?.uid as never);

describe("L28 quiesce and flush by themselves", () => {
  it("answer what the guest confirmed, and never touch the cluster", async () => {
    expect(await disk().quiesce(order, patient)).toMatchObject({ scope: "pid_namespace", holdId: undefined });
    expect(await disk().quiesce({ graceMs: 10, holdMs: 60_000 }, patient)).toMatchObject({ holdId: "hold-1" });
    expect(await disk().flush(4_321, patient)).toEqual({ tookMs: 1 });
    await disk().release("hold-1", patient);
    expect(on.cluster.plan.requests).toEqual([]);
    expect(workspace.state.t).toBe("active");
  });

  it("pass on the time, the grace and the lease that the caller gave", async () => {
    const asked: unknown[] = [];
    const { quiesce } = agent();
    agent().quiesce = async (given, within) => {
      asked.push(given);
      return await quiesce(given, within);
    };
    agent().flush = async (timeoutMs) => {
      asked.push(timeoutMs);
      return { tookMs: 1 };
    };
    await disk().quiesce({ graceMs: 4_999, holdMs: 600_000 }, patient);
    await disk().flush(4_321, patient);
    expect(asked).toEqual([{ graceMs: 4_999, holdMs: 600_000 }, 4_321]);
  });

  it.each([
    ["quiesce", () => disk().quiesce(order, patient)],
    ["flush", () => disk().flush(1_000, patient)],
  ])("%s is GUEST_FEATURE_MISSING where the image cannot, and nothing is sent", async (_verb, call) => {
    await openWith(["executions", "probe"]);
    await expect(call()).rejects.toMatchObject({ reason: "GUEST_FEATURE_MISSING" });
    expect(on.guests.calls).toEqual([]);
  });

  it.each([
    ["quiesce", "QUIESCE_UNCONFIRMED", () => disk().quiesce(order, patient)],
    ["flush", "FLUSH_UNCONFIRMED", () => disk().flush(1_000, patient)],
  ] as const)("%s is %s where the guest says so, or falls silent", async (verb, reason, call) => {
    const refuse = () => Promise.reject(new HoldfastError(reason, { message: "not all of it" }));
    Object.assign(agent(), { [verb]: refuse });
    await expect(call()).rejects.toMatchObject({ reason, message: "not all of it" });
    Object.assign(agent(), { [verb]: (_: unknown, within: Parameters<typeof silence>[0]) => silence(within) });
    await expect(on.clock.runUntilSettled<unknown>(call())).rejects.toMatchObject({
      reason,
      metadata: { why: "silent" },
    });
    expect(workspace.state.t).toBe("active");
  });

  it("need an active workspace: nothing is dialled, and nothing waited for", async () => {
    await workspace.suspend({ ...suspendWish, flush: { enabled: false, timeoutMs: 1 } }, patient);
    on.guests.calls.length = 0;
    await expect(disk().quiesce(order, patient)).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    await expect(disk().flush(1_000, patient)).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    expect(on.guests.calls).toEqual([]);
  });

  it("take their turn among the transitions: a suspend behind one waits for it, and one behind a suspend finds it suspended", async () => {
    let answer: (() => void) | undefined;
    agent().flush = () =>
      new Promise((resolve) => {
        answer = () => resolve({ tookMs: 1 });
      });
    const flushing = disk().flush(1_000, patient);
    const suspending = workspace.suspend({ ...suspendWish, flush: { enabled: false, timeoutMs: 1 } }, patient);
    const late = disk()
      .quiesce(order, patient)
      .catch((error: unknown) => error);
    await settleTasks();
    expect(on.cluster.plan.writes).toEqual([]);
    answer?.();
    expect(await flushing).toEqual({ tookMs: 1 });
    expect((await suspending).view.state).toBe("suspended");
    expect(await late).toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
  });

  it("wait for their turn no longer than the time they have, and then have sent nothing", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend({ ...suspendWish, flush: { enabled: false, timeoutMs: 1 } }, patient);
    await settleTasks();
    const late = on.clock.runUntilSettled<unknown>(disk().flush(1_000, patient), 3_001);
    await expect(late).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
      metadata: { operation: "FlushWorkspace" },
    });
    const leaving = new AbortController();
    const left = disk().flush(1_000, leaving.signal);
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    on.cluster.endPods(id);
    await suspending;
    expect(on.guests.count("flush")).toBe(0);
  });

  it("carry their caller's epoch", async () => {
    on.cluster.stored(id).stamps.holderEpoch = "7";
    await workspace.open({ ...openWish, fencing: { t: "epoch", epoch: 7 as never } }, patient);
    await expect(disk().flush(1_000, patient)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    await workspace.diskUnder(7 as never).flush(1_000, patient);
    expect(on.guests.calls.at(-1)).toMatchObject({ verb: "flush", epoch: 7 });
  });
});
