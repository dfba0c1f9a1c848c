import { describe, expect, it } from "vitest";
import type { Guest } from "../ports/guest.ts";
import { GuestLeases } from "./guest-leases.ts";

/** A guest of which only its end is asked: how often it was closed, and let go when it is idle. */
function guest() {
  const counts = { closed: 0, retired: 0 };
  const acts = {
    close(): void {
      counts.closed += 1;
    },
    retire(): void {
      counts.retired += 1;
    },
  };
  return Object.assign(counts, { guest: acts as unknown as Guest });
}

describe("the streams of a guest", () => {
  it("are counted one by one, each given back once; a guest that nobody uses is none", () => {
    const leases = new GuestLeases();
    const { guest: one } = guest();
    const [first, second] = [leases.take(one), leases.take(one)];
    expect([leases.of(one), leases.inUse()]).toEqual([2, [one]]);
    first();
    first();
    expect(leases.of(one)).toBe(1);
    second();
    expect([leases.of(one), leases.inUse()]).toEqual([0, []]);
  });

  it("keep a guest that is left until the last of them has ended; then it is closed, once", () => {
    const leases = new GuestLeases();
    const left = guest();
    const [first, second] = [leases.take(left.guest), leases.take(left.guest)];
    leases.retire(left.guest);
    first();
    first();
    expect(left.closed).toBe(0);
    second();
    expect(left.closed).toBe(1);
    leases.take(left.guest)();
    expect(left.closed).toBe(1);
  });

  it("close nobody who was not left", () => {
    const leases = new GuestLeases();
    const kept = guest();
    leases.take(kept.guest)();
    expect(kept.closed).toBe(0);
  });

  it("do not keep a guest whose programs are gone: it is closed at once, and not again after them", () => {
    const leases = new GuestLeases();
    const ended = guest();
    const giveBack = leases.take(ended.guest);
    leases.retire(ended.guest);
    leases.end(ended.guest);
    expect(ended.closed).toBe(1);
    giveBack();
    expect(ended.closed).toBe(1);
  });

  it("deliver what was sent before from a guest whose pod was seen gone: it is let go, not closed", () => {
    const leases = new GuestLeases();
    const gone = guest();
    const giveBack = leases.take(gone.guest);
    expect(leases.isGone(gone.guest)).toBe(false);
    leases.noteGone(gone.guest);
    expect([leases.isGone(gone.guest), gone.retired, gone.closed]).toEqual([true, 1, 0]);
    giveBack();
    expect(gone.closed).toBe(0);
  });
});
