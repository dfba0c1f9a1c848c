import type { Fact, FactName, News } from "./facts.ts";
import type { BoundGuest, StateName, WorkspaceState } from "./workspace-state.ts";

type Row = Readonly<Partial<Record<FactName, StateName | readonly StateName[]>>>;

/** The whole lifecycle: which fact leads where. A pair that is absent is a programming error. A list: the fact or state says which. */
export const transitions: Readonly<Record<StateName, Row>> = {
  opening: {
    bound: "active",
    startFailed: ["gone", "suspending"],
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
    suspendRefused: ["active", "unbound"],
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
  resuming: {
    bound: "active",
    startFailed: ["unbound", "suspending", "suspended", "deleting", "gone"],
    deletionSeen: "deleting",
    vanished: "gone",
  },
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

/** True when the table has the pair. */
export function leadsSomewhere(state: StateName, fact: FactName): boolean {
  return Object.hasOwn(transitions[state], fact);
}

/** Where the fact leads. Throws for a pair that the table does not have, and for a result that it does not allow. */
export function next(state: WorkspaceState, fact: Fact | News): WorkspaceState {
  const cell = transitions[state.t][fact.t];
  if (cell === undefined) throw new Error(`no transition: ${state.t} + ${fact.t}`);
  const result = follow(state, fact);
  if (!(typeof cell === "string" ? [cell] : cell).includes(result.t)) {
    throw new Error(`no transition: ${state.t} + ${fact.t} → ${result.t}`);
  }
  return result;
}

function follow(state: WorkspaceState, fact: Fact | News): WorkspaceState {
  switch (fact.t) {
    case "bound":
      return { t: "active", bound: fact.bound };
    case "startFailed":
      return fact.standing;
    case "suspendBegan":
      return began(state);
    case "suspendRefused":
      return takenBack(state);
    case "suspendAccepted":
    case "suspendUnknown":
    case "suspendedElsewhere":
      return { t: "suspending", leaving: boundGuestOf(state) };
    case "podGone":
      return { t: "suspended" };
    case "suspendOvertaken":
      return { t: "unbound", lost: undefined, why: "somebody else woke it while it was being suspended" };
    case "resumeBegan":
      return { t: "resuming" };
    case "deleteBegan":
    case "deletionSeen":
      return { t: "deleting" };
    case "deleteRefused":
      return { t: "gone", why: "delete_refused" };
    case "deleted":
      return { t: "gone", why: "deleted" };
    case "vanished":
      return { t: "gone", why: fact.why };
    case "guestMoved":
      return state.t === "closing"
        ? { t: "closing", bound: fact.bound, why: state.why }
        : { t: "active", bound: fact.bound };
    case "guestLost":
      return state.t === "closing"
        ? { t: "closing", bound: undefined, why: fact.why }
        : { t: "unbound", lost: fact.was, why: fact.why };
  }
}

function began(state: WorkspaceState): WorkspaceState {
  if (state.t === "active") return { t: "closing", bound: state.bound, why: "" };
  if (state.t === "unbound") return { t: "closing", bound: undefined, why: state.why };
  if (state.t === "opening") return { t: "closing", bound: undefined, why: "it was never bound here" };
  return { t: "suspending", leaving: boundGuestOf(state) };
}

function takenBack(state: WorkspaceState): WorkspaceState {
  // A foreign suspend may have been seen meanwhile: then nothing is taken back (L29).
  if (state.t !== "closing") return state;
  if (state.bound) return { t: "active", bound: state.bound };
  return { t: "unbound", lost: undefined, why: state.why };
}

/** The guest that a state holds or is leaving. */
export function boundGuestOf(state: WorkspaceState): BoundGuest | undefined {
  if (state.t === "active" || state.t === "closing") return state.bound;
  return state.t === "suspending" ? state.leaving : undefined;
}
