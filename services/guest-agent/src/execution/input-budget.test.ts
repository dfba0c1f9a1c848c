import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { CommandSchema, StartExecutionRequestSchema } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { systemClock } from "@holdfast/async";
import { type ExecutionId, executionInputsMaxBytes, stdinMaxBytes } from "@holdfast/contract";
import { describe, expect, it, onTestFinished } from "vitest";
import { Quiet } from "../disk/quiet.ts";
import { choosePipes } from "../spawn/pipes.ts";
import { PosixSpawner } from "../spawn/posix-spawner.ts";
import type { Spawner } from "../spawn/spawner.ts";
import { addon } from "../testing/addon.testing.ts";
import { eventually } from "../testing/agent-process.testing.ts";
import { ExecutionTable } from "./execution-table.ts";
import { InputBudget } from "./input-budget.ts";
import { PathLooks } from "./path-looks.ts";
import { parseExecutionId, parseStart } from "./start-wish.ts";
import { Tombstones } from "./tombstones.ts";

const koffi = await addon();
const id = (text: string): ExecutionId => parseExecutionId(text);
const refusal = {
  reason: "EXECUTION_CAPACITY",
  metadata: expect.objectContaining({ setting: "executionInputsMaxBytes" }),
};

function tableOf(inputs: InputBudget, spawner: Spawner = new PosixSpawner(koffi)) {
  const root = mkdtempSync(join(tmpdir(), "holdfast-inputs-test-"));
  const table = new ExecutionTable({
    root: { path: root, real: root },
    looks: new PathLooks(systemClock),
    environment: { PATH: process.env.PATH ?? "", HOME: "/tmp" },
    clock: systemClock,
    spawner,
    pipes: choosePipes(join(root, "pipes"), koffi),
    tombstones: new Tombstones("boot-1", { append: () => undefined, tidy: async () => undefined }, Date.now),
    bootId: "boot-1",
    quiet: new Quiet(),
    inputs,
  });
  onTestFinished(async () => {
    await Promise.allSettled(table.running.map((execution) => execution.end("agent-stopped", 0)));
    rmSync(root, { recursive: true });
  });
  const start = (executionId: string, words: readonly [string, ...string[]], bytes: number) => {
    const [command, ...args] = words;
    const stdin = Buffer.alloc(bytes, "x");
    const wish = { executionId, command: create(CommandSchema, { command, args, stdin }) };
    return table.start(parseStart(create(StartExecutionRequestSchema, wish)), 0);
  };
  return { table, start };
}

/** More than a pipe takes. */
const unread = 100_000;

describe("the inputs that programs have not read", () => {
  it("G5 G12 are kept up to the bound and not a byte beyond it, and make room as they are released", () => {
    const budget = new InputBudget(100);
    const first = budget.keep(id("first"), Buffer.alloc(40));
    budget.keep(id("second"), Buffer.alloc(59));
    expect(() => budget.keep(id("above"), Buffer.alloc(2))).toThrow(expect.objectContaining(refusal));
    expect(budget.bytes).toBe(99);
    budget.keep(id("at"), Buffer.alloc(1));
    expect(() => budget.keep(id("one"), Buffer.alloc(1))).toThrow(
      expect.objectContaining({ metadata: expect.objectContaining({ executions: "second,first,at", kept: "100" }) }),
    );
    budget.keep(id("none"), new Uint8Array()); // What takes no room is never refused it.
    first.release();
    first.release();
    expect(budget.bytes).toBe(60);
    budget.keep(id("again"), Buffer.alloc(40));
    expect(budget.bytes).toBe(100);
  });

  it("G5 hold on to nothing beside themselves: a small part of a large request is copied out of it", () => {
    const budget = new InputBudget();
    const request = new Uint8Array(4_000_000).fill(7);
    const small = budget.keep(id("small"), request.subarray(1_000, 1_010));
    expect(small.bytes).toEqual(new Uint8Array(10).fill(7));
    expect(small.bytes.buffer.byteLength).toBe(10);
    const whole = budget.keep(id("whole"), request.subarray(100));
    expect(whole.bytes.buffer).toBe(request.buffer);
  });

  it("G5 fill what the guest has for them; one byte more is refused, and nothing of it has run", async () => {
    const { table, start } = tableOf(new InputBudget());
    const sleep = ["sleep", "300"] as const;
    let left = executionInputsMaxBytes;
    for (let at = 0; left > 0; at += 1) {
      const bytes = Math.min(left, stdinMaxBytes);
      await start(`n${at}`, sleep, bytes);
      left -= bytes;
    }
    await expect(start("more", sleep, 1)).rejects.toMatchObject(refusal);
    expect(table.all.some((execution) => execution.wish.id === "more")).toBe(false);
    await start("none", sleep, 0);
    await table.require(id("n0")).end("cancelled", 0);
    await eventually(() =>
      start("more", sleep, 1).then(
        () => true,
        () => false,
      ),
    ); // The refused id was not used up.
  });

  it("G12 are let go when read, when closed unread, when the program ends or never ran; a second start of one id takes no room", async () => {
    const budget = new InputBudget(unread);
    const { table, start } = tableOf(budget);
    const isFree = () => eventually(() => budget.bytes === 0);
    await start("reads", ["sh", "-c", "cat >/dev/null; exec sleep 300"], unread);
    await isFree();
    await start("closes", ["sh", "-c", "exec <&-; exec sleep 300"], unread);
    await isFree();
    await start("missing", ["holdfast-no-such-program"], unread);
    expect(budget.bytes).toBe(0);
    await start("ends", ["sleep", "300"], unread);
    expect((await start("ends", ["sleep", "300"], unread)).joined).toBe(true);
    expect(budget.bytes).toBe(unread);
    await expect(start("more", ["sleep", "300"], 1)).rejects.toMatchObject({
      metadata: expect.objectContaining({ executions: "ends" }),
    });
    await table.require(id("ends")).end("cancelled", 0);
    await isFree();
  });

  it("G12 are let go when the guest could not start the program", async () => {
    const budget = new InputBudget(unread);
    const refused = Object.assign(new Error("EAGAIN"), { code: "EAGAIN" });
    const { start } = tableOf(budget, { spawn: () => Promise.reject(refused) });
    await expect(start("refused", ["true"], unread)).rejects.toMatchObject({ metadata: { cause: "EAGAIN" } });
    expect(budget.bytes).toBe(0);
  });

  it("G12 are still read by what a program left behind, to the last byte, and count until then", async () => {
    const budget = new InputBudget(unread);
    const { table, start } = tableOf(budget);
    const { execution } = await start(
      "leaves",
      ["sh", "-c", "exec 3<&0; (while [ ! -e go ]; do sleep 0.02; done; wc -c <&3 >read) >/dev/null 2>&1 & exit 0"],
      unread,
    );
    await execution.ended;
    expect(budget.bytes).toBe(unread);
    await (await start("goes", ["touch", "go"], 0)).execution.ended;
    await eventually(() => budget.bytes === 0);
    const { execution: tells } = await start(
      "tells",
      ["sh", "-c", "until [ -s read ]; do sleep 0.02; done; cat read"],
      0,
    );
    await tells.ended;
    expect(tells.log.at(0)?.bytes.toString().trim()).toBe(String(unread));
    expect(table.unconfirmed).toEqual([]);
  });
});
