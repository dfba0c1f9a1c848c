import { executionLogPiecesMax } from "@holdfast/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LogBudget } from "./log-budget.ts";
import { type Channel, OutputLog } from "./output-log.ts";

/** Everything from an offset on, as one reader would get it. */
function read(log: OutputLog, from: number): { channel: Channel; byte: number }[] {
  const bytes: { channel: Channel; byte: number }[] = [];
  for (let at = from; at < log.end; ) {
    const piece = log.at(at);
    if (piece === undefined) throw new Error(`nothing at ${at} of ${log.start}..${log.end}`);
    expect(piece.offset).toBe(at);
    for (const byte of piece.bytes) bytes.push({ channel: piece.channel, byte });
    at += piece.bytes.length;
  }
  return bytes;
}

describe("an output log", () => {
  it("G7 keeps the true tail at absolute offsets, however the output came", () => {
    const channel = fc.constantFrom<Channel>("stdout", "stderr");
    const append = fc.tuple(channel, fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9_000 })));
    fc.assert(
      fc.property(fc.array(append, { maxLength: 40 }), fc.nat(), (appends, seed) => {
        const cap = 10_000;
        const budget = new LogBudget();
        const log = new OutputLog(cap, budget);
        const all: { channel: Channel; byte: number }[] = [];
        const handedOut: { bytes: Buffer; copy: Buffer }[] = [];
        for (const [to, length] of appends) {
          const bytes = Buffer.from(Array.from({ length }, (_, at) => (all.length + at) % 251));
          log.append(to, bytes);
          for (const byte of bytes) all.push({ channel: to, byte });
          const piece = log.end > log.start ? log.at(log.start + (seed % (log.end - log.start))) : undefined;
          if (piece) handedOut.push({ bytes: piece.bytes, copy: Buffer.from(piece.bytes) });
        }
        expect(log.end).toBe(all.length);
        expect(log.start).toBe(Math.max(0, all.length - cap));
        const from = log.start + (log.keptBytes === 0 ? 0 : seed % log.keptBytes);
        expect(read(log, from)).toEqual(all.slice(from));
        expect(budget.bytes).toBe(log.keptBytes);
        for (const { bytes, copy } of handedOut) expect(bytes.equals(copy)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it("is bounded in pieces as well, for a program that changes streams with every byte", () => {
    const log = new OutputLog(1_000_000, new LogBudget());
    const total = executionLogPiecesMax * 2;
    for (let at = 0; at < total; at += 1) log.append(at % 2 === 0 ? "stdout" : "stderr", Buffer.from([at % 256]));
    expect(log.keptBytes).toBe(executionLogPiecesMax);
    expect(read(log, log.start).at(-1)).toEqual({ channel: "stderr", byte: (total - 1) % 256 });
  });

  it("has nothing before its start, at its end, or beyond", () => {
    const log = new OutputLog(4, new LogBudget());
    log.append("stdout", Buffer.from("abcdef"));
    expect([0, 1, 6, 7].map((at) => log.at(at))).toEqual([undefined, undefined, undefined, undefined]);
    expect(log.at(2)?.bytes.toString()).toBe("cdef");
  });
});

describe("the budget of all logs", () => {
  const filled = (budget: LogBudget, bytes: number): OutputLog => {
    const log = new OutputLog(bytes, budget);
    log.append("stdout", Buffer.alloc(bytes));
    return log;
  };

  it("G7 takes from ended commands first, the one that ended first before the others", () => {
    const budget = new LogBudget(100);
    const [first, second, running] = [filled(budget, 40), filled(budget, 30), filled(budget, 30)];
    budget.ended(second);
    budget.ended(first);
    filled(budget, 20);
    expect([first, second, running].map((log) => log.keptBytes)).toEqual([40, 0, 30]);
    expect(budget.bytes).toBe(90);
  });

  it("G7 takes from the largest running one when nothing else is left, and never goes beyond its bound", () => {
    const budget = new LogBudget(100);
    const [large, small] = [filled(budget, 80), filled(budget, 10)];
    filled(budget, 30);
    expect(small.keptBytes).toBe(10);
    expect(large.keptBytes).toBe(40);
    expect(budget.bytes).toBeLessThanOrEqual(100);
    large.dispose();
    expect(budget.bytes).toBe(40);
  });
});
