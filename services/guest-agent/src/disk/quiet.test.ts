import { quiesceScanMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import type { ProcessScope } from "./process-scope.ts";
import { Quiesce } from "./quiesce.ts";
import { Quiet } from "./quiet.ts";

const nothing: ProcessScope = { kind: "owned-sessions", members: () => [] };
const never = new AbortController().signal;
const order = { graceMs: 0, holdMs: undefined, onHold: () => () => undefined, signal: never };
const retiring = { reason: "AGENT_RETIRING" };

describe("quiet", () => {
  it("G24 waits for a start that was let in, before anything is scanned, and lets no other in", async () => {
    const quiet = new Quiet();
    const spawn = Promise.withResolvers<string>();
    const starting = quiet.start(() => spawn.promise);
    let scans = 0;
    const scope: ProcessScope = {
      kind: "owned-sessions",
      members: () => {
        scans += 1;
        return [];
      },
    };
    const quiesce = new Quiesce(scope, quiet, new HandClock()).run(order);
    while (!quiet.isQuiet) await Promise.resolve();
    await expect(quiet.start(async () => "late")).rejects.toMatchObject(retiring);
    expect(scans).toBe(0);
    spawn.resolve("let in");
    expect(await starting).toBe("let in");
    await quiesce;
    expect(scans).toBeGreaterThan(0);
    expect(await quiet.start(async () => "after")).toBe("after");
  });

  it("G24 a start that the kernel does not answer leaves it unconfirmed by name in time, and the guest open again", async () => {
    const [quiet, clock] = [new Quiet(), new HandClock()];
    const starting = quiet.start(() => new Promise<never>(() => undefined));
    starting.catch(() => undefined);
    const quiesce = new Quiesce(nothing, quiet, clock).run(order);
    while (!quiet.isQuiet) await Promise.resolve();
    clock.pass(quiesceScanMs);
    await expect(quiesce).rejects.toMatchObject({ reason: "QUIESCE_UNCONFIRMED", metadata: { cause: "start-held" } });
    expect(await quiet.start(async () => "after")).toBe("after");
  });

  it("G24 a start that never comes to an end holds nobody up for good: withdrawn, the guest is open again", async () => {
    const quiet = new Quiet();
    const starting = quiet.start(() => new Promise<never>(() => undefined));
    starting.catch(() => undefined);
    const withdrawn = new AbortController();
    const quiesce = new Quiesce(nothing, quiet, new HandClock()).run({ ...order, signal: withdrawn.signal });
    while (!quiet.isQuiet) await Promise.resolve();
    withdrawn.abort(new Error("withdrawn"));
    await expect(quiesce).rejects.toThrow("withdrawn");
    expect(await quiet.start(async () => "open")).toBe("open");
  });

  it("G24 holds until it is released, by its id or whichever", async () => {
    const quiet = new Quiet();
    const quiesce = new Quiesce(nothing, quiet, new HandClock());
    const { holdId } = await quiesce.run({ ...order, holdMs: 1_000 });
    await expect(quiet.start(async () => undefined)).rejects.toMatchObject({
      ...retiring,
      metadata: { cause: "quiesce" },
    });
    expect(quiesce.release("another")).toBe(false);
    expect(quiet.isQuiet).toBe(true);
    expect(quiesce.release(holdId ?? "")).toBe(true);
    expect(quiet.isQuiet).toBe(false);
    expect(quiesce.release(holdId ?? "")).toBe(false);
    await quiesce.run({ ...order, holdMs: 1_000 });
    expect(quiesce.release("")).toBe(true);
  });

  it("G24 holds no longer than its lease, and a second hold takes the first one's place", async () => {
    const quiet = new Quiet();
    const clock = new HandClock();
    const quiesce = new Quiesce(nothing, quiet, clock);
    const first = await quiesce.run({ ...order, holdMs: 1_000 });
    clock.pass(900);
    const second = await quiesce.run({ ...order, holdMs: 1_000 });
    clock.pass(900);
    expect(quiet.isQuiet).toBe(true);
    expect(quiesce.release(first.holdId ?? "")).toBe(false);
    clock.pass(100);
    expect(quiet.isQuiet).toBe(false);
    expect(quiesce.release(second.holdId ?? "")).toBe(false);
    expect(clock.pending).toBe(0);
  });

  it("G24 does not hold after a failure, nor for a holder that was superseded meanwhile", async () => {
    const quiet = new Quiet();
    const blind: ProcessScope = {
      kind: "owned-sessions",
      members: () => {
        throw new Error("EMFILE");
      },
    };
    await expect(new Quiesce(blind, quiet, new HandClock()).run({ ...order, holdMs: 1_000 })).rejects.toMatchObject({
      reason: "QUIESCE_UNCONFIRMED",
      metadata: { cause: "EMFILE" },
    });
    expect(quiet.isQuiet).toBe(false);
    const onHold = (): never => {
      throw new Error("superseded");
    };
    const quiesce = new Quiesce(nothing, quiet, new HandClock());
    await expect(quiesce.run({ ...order, holdMs: 1_000, onHold })).rejects.toThrow("superseded");
    expect(quiet.isQuiet).toBe(false);
  });
});
