import { describe, expect, it } from "vitest";
import type { FactName } from "./facts.ts";
import { leadsSomewhere, next, transitions } from "./transitions.ts";
import type { StateName, WorkspaceState } from "./workspace-state.ts";

const placeholder = {} as never;

const states: Record<StateName, WorkspaceState> = {
  opening: { t: "opening" },
  active: { t: "active", bound: placeholder },
  unbound: { t: "unbound", lost: undefined, why: "w" },
  closing: { t: "closing", bound: placeholder, why: "w" },
  suspending: { t: "suspending", leaving: undefined },
  suspended: { t: "suspended" },
  resuming: { t: "resuming" },
  deleting: { t: "deleting" },
  gone: { t: "gone", why: "deleted" },
};

/** Spelled out, not derived: the table as the design page has it. */
const expected: Record<StateName, Partial<Record<FactName, StateName>>> = {
  opening: {
    bound: "active",
    startFailed: "gone",
    suspendBegan: "closing",
    resumeBegan: "resuming",
    deleteBegan: "deleting",
    deletionSeen: "deleting",
    vanished: "gone",
  },
  active: {
    suspendBegan: "closing",
    resumeBegan: "resuming",
    deleteBegan: "deleting",
    deletionSeen: "deleting",
    vanished: "gone",
    guestMoved: "active",
    guestLost: "unbound",
    suspendedElsewhere: "suspending",
  },
  unbound: {
    suspendBegan: "closing",
    resumeBegan: "resuming",
    deleteBegan: "deleting",
    deletionSeen: "deleting",
    vanished: "gone",
    guestMoved: "active",
    guestLost: "unbound",
    suspendedElsewhere: "suspending",
  },
  closing: {
    suspendRefused: "active",
    suspendAccepted: "suspending",
    suspendUnknown: "suspending",
    deletionSeen: "deleting",
    vanished: "gone",
    guestMoved: "closing",
    guestLost: "closing",
    suspendedElsewhere: "suspending",
  },
  suspending: {
    suspendBegan: "suspending",
    suspendRefused: "suspending",
    suspendAccepted: "suspending",
    suspendUnknown: "suspending",
    podGone: "suspended",
    suspendOvertaken: "unbound",
    resumeBegan: "resuming",
    deleteBegan: "deleting",
    deletionSeen: "deleting",
    vanished: "gone",
  },
  suspended: {
    suspendBegan: "suspending",
    resumeBegan: "resuming",
    deleteBegan: "deleting",
    deletionSeen: "deleting",
    vanished: "gone",
  },
  resuming: { bound: "active", startFailed: "gone", deletionSeen: "deleting", vanished: "gone" },
  deleting: {
    deleteBegan: "deleting",
    resumeBegan: "resuming",
    deletionSeen: "deleting",
    deleteRefused: "gone",
    deleted: "gone",
    vanished: "gone",
  },
  gone: {},
};

const facts: Record<FactName, Parameters<typeof next>[1]> = {
  bound: { t: "bound", bound: placeholder },
  startFailed: { t: "startFailed", standing: { t: "gone", why: "start_failed" } },
  suspendBegan: { t: "suspendBegan" },
  suspendRefused: { t: "suspendRefused" },
  suspendAccepted: { t: "suspendAccepted" },
  suspendUnknown: { t: "suspendUnknown" },
  podGone: { t: "podGone" },
  suspendOvertaken: { t: "suspendOvertaken" },
  resumeBegan: { t: "resumeBegan" },
  deleteBegan: { t: "deleteBegan" },
  deleteRefused: { t: "deleteRefused" },
  deleted: { t: "deleted" },
  deletionSeen: { t: "deletionSeen" },
  vanished: { t: "vanished", why: "absent" },
  guestMoved: { t: "guestMoved", was: undefined, bound: placeholder },
  guestLost: { t: "guestLost", was: undefined, why: "w" },
  suspendedElsewhere: { t: "suspendedElsewhere", was: undefined },
};

const stateNames = Object.keys(states) as StateName[];
const factNames = Object.keys(facts) as FactName[];

describe("the table", () => {
  it.each(stateNames.flatMap((state) => factNames.map((fact) => ({ state, fact, to: expected[state][fact] }))))(
    "$state + $fact → $to",
    ({ state, fact, to }) => {
      if (to === undefined) {
        expect(() => next(states[state], facts[fact])).toThrow(`no transition: ${state} + ${fact}`);
        expect(leadsSomewhere(state, fact)).toBe(false);
      } else {
        expect(next(states[state], facts[fact]).t).toBe(to);
      }
    },
  );

  it("has every pair spelled out here", () => {
    const pairs = stateNames.map((state) => [state, Object.keys(transitions[state]).sort()]);
    expect(pairs).toEqual(stateNames.map((state) => [state, Object.keys(expected[state]).sort()]));
  });

  it("L1 takes a refused suspend back to where it was: to its guest, or to none", () => {
    expect(next({ t: "closing", bound: placeholder, why: "" }, facts.suspendRefused).t).toBe("active");
    expect(next({ t: "closing", bound: undefined, why: "it ended" }, facts.suspendRefused)).toEqual({
      t: "unbound",
      lost: undefined,
      why: "it ended",
    });
  });

  it.each(["unbound", "suspending", "suspended", "deleting", "gone"] as const)(
    "L6 lets a failed resume lead to what a re-read shows: %s",
    (name) => {
      const standing = states[name];
      expect(next(states.resuming, { t: "startFailed", standing: standing as never })).toBe(standing);
    },
  );

  it("L1 lets a failed open keep its handle as suspending, where a suspend of ours may still land", () => {
    const standing = { t: "suspending", leaving: undefined } as const;
    expect(next(states.opening, { t: "startFailed", standing })).toBe(standing);
  });

  it("refuses a standing that the table does not allow", () => {
    const fact = { t: "startFailed", standing: states.suspended } as never;
    expect(() => next(states.opening, fact)).toThrow("opening + startFailed → suspended");
  });
});
