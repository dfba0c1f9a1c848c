import { expect, it } from "vitest";
import { RestartBackoff } from "./restart-backoff.ts";

it("restarts at once, then after 1, 2, 4 … at most 30 seconds, and anew after ten good minutes", () => {
  const backoff = new RestartBackoff();
  const waits = Array.from({ length: 8 }, () => backoff.nextMs(100) / 1000);
  expect(waits).toEqual([0, 1, 2, 4, 8, 16, 30, 30]);
  expect(backoff.nextMs(10 * 60_000)).toBe(0);
  expect(backoff.nextMs(100)).toBe(1000);
});
