import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { CommandSchema, OnDisconnect, StartExecutionRequestSchema } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import {
  executionIdPattern,
  executionKeptMs,
  executionRecordsMax,
  executionRequestsMaxBytes,
  executionTombstoneKeptMs,
  orphanAfterMs,
  retainedExecutionKeptMs,
} from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { Quiet } from "../disk/quiet.ts";
import { choosePipes } from "../spawn/pipes.ts";
import { PosixSpawner } from "../spawn/posix-spawner.ts";
import { addon } from "../testing/addon.testing.ts";
import type { Execution } from "./execution.ts";
import { ExecutionTable } from "./execution-table.ts";
import { type PathLook, PathLooks } from "./path-looks.ts";
import { parseExecutionId, parseStart } from "./start-wish.ts";
import { Tombstones } from "./tombstones.ts";

const koffi = await addon();
const unkept = { append: () => undefined, tidy: async () => undefined };

function tableOf(looks?: PathLook) {
  const root = mkdtempSync(join(tmpdir(), "holdfast-table-test-"));
  const clock = new HandClock();
  const environment = { PATH: process.env.PATH ?? "", HOME: "/tmp" };
  const table = new ExecutionTable({
    root: { path: root, real: root },
    looks: looks ?? new PathLooks(clock),
    environment,
    clock,
    spawner: new PosixSpawner(koffi),
    pipes: choosePipes(join(root, "pipes"), koffi),
    tombstones: new Tombstones("boot-1", unkept, clock.now),
    bootId: "boot-1",
    quiet: new Quiet(),
  });
  onTestFinished(async () => {
    await Promise.allSettled(table.running.map((execution) => execution.end("agent-stopped", 0)));
    rmSync(root, { recursive: true });
  });
  return { table, clock, root };
}

/** A file system that answers once the test lets it: `asked` tells that it was asked. */
function heldLook() {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const looks: PathLook = {
    async at(_, ask) {
      asked.resolve();
      await answer.promise;
      return ask();
    },
  };
  return { looks, asked, answer };
}

interface Delivery {
  readonly cwd?: string;
  readonly onDisconnect?: OnDisconnect;
  readonly retainOutput?: boolean;
}

function wishOf(executionId: string, words: readonly string[], { cwd = "", ...delivery }: Delivery = {}) {
  const [program = "true", ...args] = words;
  const command = create(CommandSchema, { command: program, args, cwd });
  return parseStart(create(StartExecutionRequestSchema, { executionId, command, ...delivery }));
}

const owner = { position: Number.POSITIVE_INFINITY };

async function exitOf(execution: Execution) {
  await execution.ended;
  return execution.state.t === "ended" ? execution.state.exit : undefined;
}

describe("a command that is bound to its client", () => {
  it("G6 waits 60 s after the link was lost, then is ended as orphaned", async () => {
    const { table, clock } = tableOf();
    const { execution } = await table.start(
      wishOf("bound", ["sleep", "300"], { onDisconnect: OnDisconnect.CANCEL }),
      0,
    );
    execution.adopt(owner);
    execution.disown(owner, "lost");
    clock.pass(orphanAfterMs - 1);
    expect(execution.state.t).toBe("running");
    clock.pass(1);
    expect(await exitOf(execution)).toMatchObject({ status: { signal: "SIGTERM" }, cause: "orphaned" });
  });

  it("G6 lives on when somebody takes the client's place in time", async () => {
    const { table, clock } = tableOf();
    const { execution } = await table.start(wishOf("kept", ["sleep", "300"], { onDisconnect: OnDisconnect.CANCEL }), 0);
    execution.adopt(owner);
    execution.disown(owner, "lost");
    clock.pass(orphanAfterMs - 1);
    execution.adopt({ position: 0 });
    clock.pass(orphanAfterMs * 2);
    expect(execution.state.t).toBe("running");
    expect(clock.pending).toBe(0);
  });

  it("L44 is alone in that: another command outlives any loss of its link", async () => {
    const { table, clock } = tableOf();
    const { execution } = await table.start(wishOf("free", ["sleep", "300"]), 0);
    execution.adopt(owner);
    execution.disown(owner, "lost");
    clock.pass(orphanAfterMs * 100);
    expect(execution.state.t).toBe("running");
  });
});

describe("records", () => {
  it("G6 keep no more of what was asked for than their limit: ended ones make room, the oldest first", async () => {
    const { table } = tableOf();
    const long = "x".repeat(3 * 1024 * 1024);
    const count = Math.floor(executionRequestsMaxBytes / long.length) + 5;
    for (let at = 0; at < count; at += 1) {
      const { execution } = await table.start(wishOf(`long-${at}`, ["nobody-has-such-a-program", long]), 0);
      await execution.ended;
    }
    const kept = table.all.map(({ wish }) => wish.id);
    expect(kept.length).toBe(Math.floor(executionRequestsMaxBytes / long.length));
    expect(kept.at(-1)).toBe(`long-${count - 1}`);
    expect(kept).not.toContain("long-0");
  });

  it("G6 of those that run give no room: what does not fit is refused by its setting", async () => {
    const { table } = tableOf();
    const parts = Array.from({ length: 16 }, () => "x".repeat(100 * 1024)); // Of what the kernel takes for one argument.
    const each = 16 * 100 * 1024;
    for (let at = 0; at < Math.floor(executionRequestsMaxBytes / each) - 1; at += 1) {
      await table.start(wishOf(`runs-${at}`, ["sh", "-c", "sleep 300", ...parts]), 0);
    }
    const more = Array.from({ length: 2 }, (_, at) =>
      table.start(wishOf(`more-${at}`, ["sh", "-c", "sleep 300", ...parts]), 0),
    );
    const results = await Promise.allSettled(more);
    expect(results.at(-1)).toMatchObject({
      reason: { reason: "EXECUTION_CAPACITY", metadata: { setting: "executionRequestsMaxBytes" } },
    });
  });

  it("G6 are kept 60 s, or 10 min when output is retained; then the id stays and is not run again", async () => {
    const { table, clock } = tableOf();
    const plain = await table.start(wishOf("plain", ["true"]), 0);
    const retained = await table.start(wishOf("retained", ["true"], { retainOutput: true }), 0);
    await Promise.all([plain.execution.ended, retained.execution.ended]);
    clock.pass(executionKeptMs - 1);
    expect(table.require(parseExecutionId("plain"))).toBe(plain.execution);
    clock.pass(1_000);
    expect(() => table.require(parseExecutionId("plain"))).toThrow(/has expired/);
    expect(table.require(parseExecutionId("retained"))).toBe(retained.execution);
    await expect(table.start(wishOf("plain", ["true"]), 0)).rejects.toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
    await expect(table.start(wishOf("plain", ["false"]), 0)).rejects.toMatchObject({ reason: "EXECUTION_EXISTS" });
    clock.pass(retainedExecutionKeptMs);
    expect(() => table.require(parseExecutionId("retained"))).toThrow(/has expired/);
    clock.pass(executionTombstoneKeptMs);
    await (await table.start(wishOf("plain", ["true"]), 0)).execution.ended;
  });

  it("are not taken from somebody who still reads them", async () => {
    const { table, clock } = tableOf();
    const { execution } = await table.start(wishOf("read", ["true"]), 0);
    await execution.ended;
    const stop = execution.watch(() => undefined);
    clock.pass(executionKeptMs * 3);
    expect(table.require(parseExecutionId("read"))).toBe(execution);
    stop();
    clock.pass(executionKeptMs);
    expect(() => table.require(parseExecutionId("read"))).toThrow(/has expired/);
  });

  it("G6 number 1,024: ended ones make room, running ones do not, and the refusal names the limit", async () => {
    const { table } = tableOf();
    // A program that is missing ends at once and costs no process.
    await (await table.start(wishOf("keeper", ["no-such-program"], { retainOutput: true }), 0)).execution.ended;
    for (let at = 1; at < executionRecordsMax; at += 1) {
      await (await table.start(wishOf(`n${at}`, ["no-such-program"]), 0)).execution.ended;
    }
    await (await table.start(wishOf("one-more", ["no-such-program"]), 0)).execution.ended;
    expect(() => table.require(parseExecutionId("n1"))).toThrow(/has expired/);
    expect(table.require(parseExecutionId("keeper")).state.t).toBe("ended");
    expect(table.require(parseExecutionId("n2")).state.t).toBe("ended");
    for (let at = 2; at < executionRecordsMax; at += 1)
      table.require(parseExecutionId(`n${at}`)).watch(() => undefined);
    for (const id of ["keeper", "one-more"]) table.require(parseExecutionId(id)).watch(() => undefined);
    await expect(table.start(wishOf("too-many", ["true"]), 0)).rejects.toMatchObject({
      reason: "EXECUTION_CAPACITY",
      metadata: { limit: String(executionRecordsMax) },
    });
  });

  it("of starts that the guest refused are none: the id may be used again", async () => {
    const { table } = tableOf();
    const huge = Array.from({ length: 40 }, () => "x".repeat(100_000));
    await expect(table.start(wishOf("again", ["echo", ...huge]), 0)).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
    });
    const { execution, joined } = await table.start(wishOf("again", ["true"]), 0);
    expect(joined).toBe(false);
    expect(await exitOf(execution)).toMatchObject({ status: { code: 0 } });
  });
});

describe("tombstones", () => {
  it("G6 are bounded: the oldest go first", () => {
    const tombstones = new Tombstones("boot-1", unkept, new HandClock().now, 4);
    const ids = ["runs", "a", "b", "c", "d"].map(parseExecutionId);
    for (const id of ids) tombstones.begin(id, `hash of ${id}`);
    for (const id of ids.slice(1)) tombstones.end(id);
    const hashes = ids.map((id) => tombstones.get(id)?.hash);
    expect(hashes).toEqual(["hash of runs", undefined, "hash of b", "hash of c", "hash of d"]);
  });
});

describe("what makes two starts the same request", () => {
  it("is the command, arguments, directory, environment, input and timeout, and nothing of the delivery", () => {
    const base = { command: "a", args: ["b"], cwd: "c", env: { D: "e", F: "g" }, stdin: Buffer.from("h") };
    const hashOf = (command: MessageInitShape<typeof StartExecutionRequestSchema>["command"], more = {}) =>
      parseStart(create(StartExecutionRequestSchema, { executionId: "x", command, ...more })).hash;
    const hash = hashOf(base);
    expect(hashOf({ ...base, env: { F: "g", D: "e" } })).toBe(hash);
    expect(hashOf(base, { retainOutput: true, leftovers: 2, onDisconnect: 2, maxOutputBytes: 5n })).toBe(hash);
    for (const other of [
      { ...base, command: "ab", args: [] },
      { ...base, args: ["b", ""] },
      { ...base, cwd: "" },
      { ...base, env: { D: "e" } },
      { ...base, stdin: Buffer.from("i") },
      { ...base, timeout: { seconds: 1n } },
    ]) {
      expect(hashOf(other)).not.toBe(hash);
    }
  });

  it("has an id of the contract's alphabet", () => {
    expect(executionIdPattern.test("aZ0._-")).toBe(true);
    for (const id of ["", "a b", "a/b", "é", "x".repeat(65)])
      expect(() => parseExecutionId(id)).toThrow(/execution_id/);
  });
});

describe("a start whose directory takes its time", () => {
  it("G5a is judged again after that look: of a holder superseded meanwhile nothing is begun, and its id stays free", async () => {
    const { looks, asked, answer } = heldLook();
    const { table, root } = tableOf(looks);
    mkdirSync(join(root, "below"));
    const wish = wishOf("late", ["sh", "-c", `echo x >> ${root}/ran`], { cwd: "below" });
    let superseded = false;
    const admit = (): void => {
      if (superseded) throw new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "another holder");
    };
    const one = table.start(wish, 0, admit);
    await asked.promise;
    const other = table.start(wish, 0, admit); // Joins: finding the id and taking it is one step, also with a look between.
    superseded = true;
    answer.resolve();
    await expect(one).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    await expect(other).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect([table.all, existsSync(join(root, "ran"))]).toEqual([[], false]);
    const again = await table.start(wish, 0);
    expect([again.joined, await exitOf(again.execution)]).toMatchObject([false, { status: { code: 0 } }]);
    expect(readFileSync(join(root, "ran"), "utf8")).toBe("x\n");
  });

  it("G5a refused to a superseded holder is not refused to the next, who joined it: it is begun for that one", async () => {
    const { looks, asked, answer } = heldLook();
    const { table, root } = tableOf(looks);
    mkdirSync(join(root, "below"));
    const wish = wishOf("once", ["sh", "-c", `echo x >> ${root}/ran`], { cwd: "below" });
    const former = table.start(wish, 0, () => {
      throw new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "another holder");
    });
    await asked.promise;
    const next = table.start(wish, 0);
    answer.resolve();
    await expect(former).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    const { execution, joined } = await next;
    expect([joined, await exitOf(execution)]).toMatchObject([false, { status: { code: 0 } }]);
    expect(readFileSync(join(root, "ran"), "utf8")).toBe("x\n");
  });

  it("G6 joins a second start of its id: one process", async () => {
    const { looks, asked, answer } = heldLook();
    const { table, root } = tableOf(looks);
    mkdirSync(join(root, "below"));
    const wish = wishOf("once", ["sh", "-c", `echo x >> ${root}/ran`], { cwd: "below" });
    const starts = [table.start(wish, 0), table.start(wish, 0)];
    await asked.promise;
    answer.resolve();
    const [one, other] = await Promise.all(starts);
    expect([one?.joined, other?.joined, one?.execution === other?.execution]).toEqual([false, true, true]);
    if (one) await one.execution.ended;
    expect(readFileSync(join(root, "ran"), "utf8")).toBe("x\n");
  });
});
