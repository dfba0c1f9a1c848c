import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { sleep } from "./follow.ts";
import { callAfter } from "./long-timer.ts";

const days = 86_400_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("B56 thirty days are thirty days, and can be called off", () => {
  let calls = 0;
  callAfter(30 * days, () => calls++);
  const stop = callAfter(30 * days, () => calls++);
  vi.advanceTimersByTime(30 * days - 1);
  expect(calls).toBe(0);
  stop();
  vi.advanceTimersByTime(1);
  expect(calls).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

it("B56 a probe that is to pause for thirty days does not go round at once", async () => {
  let woke = false;
  const sleeping = sleep(30 * days, new AbortController().signal).then(() => {
    woke = true;
  });
  await vi.advanceTimersByTimeAsync(30 * days - 1);
  expect(woke).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await sleeping;
});
