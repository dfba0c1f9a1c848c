import { workspaceId } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { LateCreates } from "./late-creates.ts";

const [one, other] = [workspaceId("one"), workspaceId("other")];

describe("L14 creates that nobody answered", () => {
  it("are looked for until the last of them is over, each workspace's by themselves", () => {
    const creates = new LateCreates();
    const ends = [creates.seek(one, { takenOn: false }), creates.seek(one, { takenOn: false })];
    expect([creates.areSought(one), creates.areSought(other)]).toEqual([true, false]);
    ends[0]?.();
    ends[0]?.();
    expect(creates.areSought(one)).toBe(true);
    ends[1]?.();
    expect(creates.areSought(one)).toBe(false);
  });

  it("that a later start goes on with are not the failed call's any more; those that come later are", () => {
    const creates = new LateCreates();
    const [first, second, others] = [{ takenOn: false }, { takenOn: false }, { takenOn: false }];
    creates.seek(one, first);
    creates.seek(other, others);
    creates.takeOn(one);
    creates.seek(one, second);
    expect([first.takenOn, second.takenOn, others.takenOn]).toEqual([true, false, false]);
  });
});
