import { expect, it } from "vitest";
import { RestartBackoff } from "./restart-backoff.ts";

it("restarts at once, then after 10, 20, 40 … at most 300 seconds, and anew after ten good minutes", () => {
  const backoff = new RestartBackoff();
  const waits = Array.from({ length: 8 }, () => backoff.nextMs(100) / 1000);
  expect(waits).toEqual([0, 10, 20, 40, 80, 160, 300, 300]);
  expect(backoff.nextMs(10 * 60_000)).toBe(0);
  expect(backoff.nextMs(100)).toBe(10_000);
});
