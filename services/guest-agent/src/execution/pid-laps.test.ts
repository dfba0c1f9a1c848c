import { describe, expect, it } from "vitest";
import { PidLaps } from "./pid-laps.ts";

describe("the laps of pids", () => {
  it("are the same while the count goes up and is looked at often", () => {
    let nowMs = 0;
    const laps = new PidLaps(() => nowMs);
    const first = laps.see(100);
    for (let pid = 100; pid < 200; pid += 10) {
      nowMs += 500;
      expect(laps.see(pid)).toBe(first);
    }
  });

  it("are others once it has gone down, or may have gone round unseen", () => {
    let nowMs = 0;
    const laps = new PidLaps(() => nowMs);
    const first = laps.see(30_000);
    const second = laps.see(300);
    nowMs += 501;
    const third = laps.see(400);
    expect(new Set([first, second, third]).size).toBe(3);
  });
});
