import { outputChunkMaxBytes } from "@holdfast/contract";
import type { ExecutionEvent } from "@holdfast/workspace";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventQueue } from "./event-queue.ts";

const source = () => {
  const calls: string[] = [];
  return { calls, pause: () => void calls.push("pause"), resume: () => void calls.push("resume") };
};

async function drained(queue: EventQueue): Promise<ExecutionEvent[]> {
  const events: ExecutionEvent[] = [];
  for (let event = await queue.next(); event; event = await queue.next()) events.push(event);
  return events;
}

describe("events between a stream and its reader", () => {
  it("keep every byte, its stream and its offset, however they were joined and split", async () => {
    const piece = fc.record({
      stream: fc.constantFrom("stdout" as const, "stderr" as const),
      bytes: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: outputChunkMaxBytes * 3 })),
      gap: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        const queue = new EventQueue();
        queue.feedFrom(source());
        const expected: string[] = [];
        let offset = 0;
        for (const { stream, bytes, gap } of pieces) {
          if (gap) {
            queue.push({ t: "gap", from: offset, to: offset + 10, reason: "dropped" });
            expected.push(`gap at ${offset}`);
            offset += 10;
          }
          queue.push({ t: "output", stream, offset, data: Buffer.alloc(bytes, offset % 251) });
          for (let at = 0; at < bytes; at += 1) expected.push(`${stream} ${offset + at} ${offset % 251}`);
          offset += bytes;
        }
        queue.end(undefined);
        const got: string[] = [];
        for (const event of await drained(queue)) {
          if (event.t === "gap") got.push(`gap at ${event.from}`);
          if (event.t !== "output") continue;
          if (event.data.length > outputChunkMaxBytes) throw new Error(`a chunk of ${event.data.length} bytes`);
          for (const [at, byte] of event.data.entries()) got.push(`${event.stream} ${event.offset + at} ${byte}`);
        }
        if (got.join() !== expected.join()) throw new Error("bytes differ");
      }),
      { numRuns: 10 },
    );
  });

  it("joins small pieces that waited, so that a slow reader does not get one message per byte", async () => {
    const queue = new EventQueue();
    for (let at = 0; at < 1000; at += 1)
      queue.push({ t: "output", stream: "stdout", offset: at, data: Buffer.from("x") });
    queue.end(undefined);
    expect(await drained(queue)).toHaveLength(1);
  });

  it("G5 holds the source back while the reader is slow, and lets it go once it has caught up", async () => {
    const queue = new EventQueue();
    const { calls, ...stream } = source();
    queue.feedFrom(stream);
    for (let at = 0; at < 8; at += 1) {
      queue.push({ t: "output", stream: "stdout", offset: at * 65_536, data: Buffer.alloc(65_536) });
    }
    expect(calls).toEqual(["pause"]);
    queue.end(undefined);
    await drained(queue);
    expect(calls).toEqual(["pause", "resume"]);
  });

  it("G5 holds a source back that floods a slow reader with events of no bytes, or with bytes one at a time", async () => {
    for (const flood of [
      (at: number): ExecutionEvent => ({ t: "gap", from: at, to: at + 1, reason: "dropped" }),
      (at: number): ExecutionEvent => ({ t: "output", stream: "stdout", offset: at, data: Buffer.from("x") }),
    ]) {
      const queue = new EventQueue();
      const { calls, ...stream } = source();
      queue.feedFrom(stream);
      let pushed = 0;
      for (; calls.length === 0 && pushed < 10_000; pushed += 1) queue.push(flood(pushed));
      expect(calls).toEqual(["pause"]);
      queue.end(undefined);
      await drained(queue);
      expect(calls).toEqual(["pause", "resume"]);
    }
  });

  it("keep every byte of a piece that comes while the one before it is handed on, and where a stream is not whole", async () => {
    const queue = new EventQueue();
    const piece = (offset: number, text: string): ExecutionEvent => ({
      t: "output",
      stream: "stdout",
      offset,
      data: Buffer.from(text),
    });
    queue.push(piece(0, "ab"));
    expect(await queue.next()).toMatchObject({ offset: 0, data: Buffer.from("ab") });
    queue.push(piece(2, "cd"));
    queue.push(piece(9, "ef"));
    queue.end(undefined);
    expect(await drained(queue)).toMatchObject([
      { offset: 2, data: Buffer.from("cd") },
      { offset: 9, data: Buffer.from("ef") },
    ]);
  });

  it("G5 holds the source back for what had come before the source was known, and lets it go only once most is read", async () => {
    const queue = new EventQueue();
    for (let at = 0; at < 8; at += 1) {
      queue.push({ t: "output", stream: "stdout", offset: at * 65_536, data: Buffer.alloc(65_536) });
    }
    const { calls, ...stream } = source();
    queue.feedFrom(stream);
    expect(calls).toEqual(["pause"]);
    await queue.next();
    await queue.next();
    expect(calls).toEqual(["pause"]);
    queue.end(undefined);
    await drained(queue);
    expect(calls).toEqual(["pause", "resume"]);
  });

  it("keeps no chunk alive for the few bytes of it that wait", async () => {
    const chunk = new Uint8Array(64 * 1024);
    const queue = new EventQueue();
    queue.push({ t: "output", stream: "stdout", offset: 0, data: chunk.subarray(0, 1) });
    const event = await queue.next();
    expect(event?.t === "output" && event.data.buffer === chunk.buffer).toBe(false);
  });

  it("gives what came before a failure, then the failure", async () => {
    const queue = new EventQueue();
    queue.push({ t: "gap", from: 0, to: 1, reason: "dropped" });
    queue.end(new Error("lost"));
    queue.end(undefined); // The first word on how it ended stands.
    expect(await queue.next()).toMatchObject({ t: "gap" });
    await expect(queue.next()).rejects.toThrow("lost");
  });
});
