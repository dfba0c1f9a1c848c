import { describe, expect, it } from "vitest";
import { StreamQueue } from "./stream-queue.ts";

function source() {
  const asked: string[] = [];
  return { asked, pause: () => asked.push("pause"), resume: () => asked.push("resume") };
}

describe("items between a stream and its reader", () => {
  it("come in order, and what came before the end is still read", async () => {
    const queue = new StreamQueue<number>();
    const first = queue.next();
    for (let n = 0; n < 200; n += 1) queue.push(n, 1);
    queue.end(new Error("cut"));
    queue.end(undefined);
    expect(await first).toBe(0);
    for (let n = 1; n < 200; n += 1) expect(await queue.next()).toBe(n);
    await expect(queue.next()).rejects.toThrow("cut");
  });

  it("hold the stream back by their bytes, and let it go on once most are read", async () => {
    const queue = new StreamQueue<number>();
    const from = source();
    queue.feedFrom(from);
    for (let n = 0; n < 6; n += 1) queue.push(n, 100 * 1024);
    expect(from.asked).toEqual(["pause"]);
    for (let n = 0; n < 4; n += 1) await queue.next();
    expect(from.asked).toEqual(["pause"]);
    await queue.next();
    expect(from.asked).toEqual(["pause", "resume"]);
    queue.end(undefined);
    expect([await queue.next(), await queue.next()]).toEqual([5, undefined]);
  });

  it("ask for it once, however much still comes of what was on its way", () => {
    const queue = new StreamQueue<number>();
    const from = source();
    queue.feedFrom(from);
    for (let n = 0; n < 12; n += 1) queue.push(n, 100 * 1024);
    expect(from.asked).toEqual(["pause"]);
  });

  it("hold back also what had come before the stream was known", () => {
    const queue = new StreamQueue<number>();
    queue.push(1, 1024 * 1024);
    const from = source();
    queue.feedFrom(from);
    expect(from.asked).toEqual(["pause"]);
  });
});
