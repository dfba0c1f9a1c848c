import { describe, expect, it } from "vitest";
import { Slots } from "./slots.ts";

describe("slots", () => {
  it("run at most so many at once, in the order in which they came, also after one that failed", async () => {
    const slots = new Slots(2);
    const begun: number[] = [];
    const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
    const done = gates.map((gate, at) =>
      slots.run(async () => {
        begun.push(at);
        await gate.promise;
        return at;
      }),
    );
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    gates[1]?.reject(new Error("one that failed"));
    await expect(done[1]).rejects.toThrow("one that failed");
    gates[0]?.resolve();
    expect(await done[0]).toBe(0);
    for (const gate of gates) gate.resolve();
    expect(await Promise.all([done[2], done[3], done[4]])).toEqual([2, 3, 4]);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });
});
