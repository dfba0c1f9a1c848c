import fc from "fast-check";
import { type Verb, verbs } from "./world/calls.ts";
import { type GuestFault, type GuestVerb, guestFaults } from "./world/model-guests.ts";

export const foreignDeeds = [
  "delete",
  "recreate",
  "restore",
  "suspend",
  "wake",
  "cycle",
  "fence",
  "kill_pod",
  "wake_and_kill_pod",
  "drain_pod",
  "kill_container",
  "lose_claim",
  "stray_pod",
] as const;
export type ForeignDeed = (typeof foreignDeeds)[number];

export const apiFaults = [
  "refuse_409",
  "refuse_422",
  "busy_429",
  "error_500",
  "lost_before",
  "lost_after",
  "late",
  "late_last",
  "held",
  "slow_answer",
] as const;
export type ApiFault = (typeof apiFaults)[number];

export const faultedRequests = [
  "create sandbox",
  "patch sandbox",
  "delete sandbox",
  "get sandbox",
  "list pods",
  "delete pod",
] as const;
export type FaultedRequestName = (typeof faultedRequests)[number];

/** How a caller presents itself: 0 never with an epoch; the others as below. */
export interface CallStep {
  readonly t: "call";
  readonly caller: number;
  readonly replica: number;
  readonly verb: Verb;
  readonly ignoresFence: boolean;
  readonly leavesOnFailure: boolean;
  /** When the caller goes away; undefined: it waits. */
  readonly goesAfterMs: number | undefined;
}

export type Step =
  | CallStep
  | { readonly t: "foreign"; readonly deed: ForeignDeed }
  /** Somebody does it just before such a request of each replica is carried out, when some have gone by. */
  | {
      readonly t: "meanwhile";
      readonly request: FaultedRequestName;
      readonly passes: number;
      readonly deed: ForeignDeed;
    }
  | {
      readonly t: "api_fault";
      readonly request: FaultedRequestName;
      readonly fault: ApiFault;
      readonly landsAfterMs: number;
    }
  | { readonly t: "guest_fault"; readonly verb: GuestVerb; readonly fault: GuestFault }
  | { readonly t: "controller"; readonly does: "stall" | "catch_up" | "restart" }
  | { readonly t: "watches"; readonly does: "drop" | "stall" | "catch_up" }
  | { readonly t: "node"; readonly steps: number }
  | { readonly t: "node_habit"; readonly works: boolean }
  | { readonly t: "restart"; readonly replica: number }
  | { readonly t: "pass"; readonly ms: number }
  | { readonly t: "clock_back"; readonly ms: number }
  /** Lets only some of what is ready run, so that the next step meets calls half way. */
  | { readonly t: "turns"; readonly count: number };

/** What a sequence is about. */
export interface Theme {
  readonly name: string;
  readonly verbs: readonly Verb[];
  readonly foreign: readonly ForeignDeed[];
  /** Callers that present an epoch of their own. */
  readonly fenced: boolean;
  readonly faults: readonly ApiFault[];
  readonly faulted: readonly FaultedRequestName[];
  /** How many of 40 steps or so are deeds of others, and how many faults; undefined: a few. */
  readonly dense?: boolean;
  /** How many sequences have this theme, as against others; undefined: 1. */
  readonly weight?: number;
}

const anyFault = { faults: apiFaults, faulted: faultedRequests };

const calm: readonly ForeignDeed[] = ["kill_pod", "drain_pod", "kill_container"];
const unfenced = verbs.filter((verb) => verb !== "take_over");

export const themes: readonly Theme[] = [
  { name: "anything, fenced", verbs, foreign: foreignDeeds, fenced: true, ...anyFault },
  {
    name: "anything, unfenced",
    verbs: unfenced,
    foreign: foreignDeeds.filter((deed) => deed !== "fence"),
    fenced: false,
    ...anyFault,
  },
  {
    name: "take-overs",
    verbs: ["open", "take_over", "resume", "suspend", "execute", "program"],
    foreign: calm,
    fenced: true,
    ...anyFault,
  },
  {
    name: "hand-overs while reads are slow",
    verbs: ["open", "take_over", "take_over", "execute", "program"],
    foreign: ["drain_pod"],
    fenced: true,
    faults: ["slow_answer", "slow_answer", "held"],
    faulted: ["get sandbox", "list pods"],
  },
  {
    name: "suspends undone while reads are slow",
    verbs: ["open", "resume", "suspend", "suspend", "read"],
    foreign: ["wake", "wake_and_kill_pod", "wake_and_kill_pod", "drain_pod"],
    fenced: false,
    faults: ["slow_answer", "slow_answer", "held"],
    faulted: ["get sandbox", "list pods", "list pods"],
    dense: true,
    weight: 2,
  },
  {
    name: "another tool suspends and wakes",
    verbs: ["open", "take_over", "suspend", "suspend", "object_suspend"],
    foreign: ["suspend", "wake"],
    fenced: true,
    faults: ["held", "late"],
    faulted: ["patch sandbox"],
    dense: true,
  },
  {
    name: "stops that overlap",
    verbs: ["open", "resume", "suspend", "destroy", "delete", "object_suspend", "object_delete", "close"],
    foreign: ["kill_pod", "wake", "recreate"],
    fenced: false,
    faults: ["held", "late", "lost_after", "slow_answer"],
    faulted: ["patch sandbox", "patch sandbox", "delete sandbox"],
  },
  {
    name: "restores from a copy",
    verbs: ["open", "resume", "suspend", "suspend", "object_suspend"],
    foreign: ["restore", "restore", "kill_pod"],
    fenced: true,
    faults: ["late", "late_last", "held", "slow_answer"],
    faulted: ["patch sandbox"],
  },
  {
    name: "starts that fail",
    verbs: ["open", "open", "resume", "take_over", "suspend", "execute"],
    foreign: ["kill_container", "suspend", "wake", "cycle", "cycle", "fence", "drain_pod"],
    fenced: true,
    faults: ["late", "late_last", "lost_after", "slow_answer", "held"],
    faulted: ["create sandbox", "patch sandbox", "get sandbox", "list pods"],
  },
  {
    name: "nobody asks for an end",
    verbs: ["open", "resume", "execute", "program", "read", "close"],
    foreign: calm,
    fenced: false,
    ...anyFault,
  },
  {
    name: "suspends and resumes",
    verbs: ["open", "resume", "suspend", "object_suspend", "execute", "read"],
    foreign: ["suspend", "wake", "drain_pod"],
    fenced: false,
    ...anyFault,
  },
];

export const callersMax = 4;

/** A step of a sequence with this theme. */
export function stepOf(theme: Theme): fc.Arbitrary<Step> {
  const call: fc.Arbitrary<Step> = fc.record({
    t: fc.constant("call" as const),
    caller: fc.nat(callersMax - 1),
    replica: fc.nat(1),
    verb: fc.constantFrom(...theme.verbs),
    ignoresFence: fc.boolean().chain((first) => (first ? fc.boolean() : fc.constant(false))),
    leavesOnFailure: fc.boolean(),
    goesAfterMs: fc.constantFrom(undefined, undefined, undefined, 0, 30, 5_000),
  });
  const of = <T extends Step["t"]>(t: T) => fc.constant(t);
  const idle: fc.Arbitrary<Step> = fc.record({ t: of("turns"), count: fc.integer({ min: 0, max: 6 }) });
  return fc.oneof(
    { withCrossShrink: true }, // A failing sequence becomes simple by its steps doing nothing.
    { weight: 3, arbitrary: idle },
    { weight: 10, arbitrary: call },
    {
      weight: theme.dense ? 8 : 3,
      arbitrary: fc.record({ t: of("foreign"), deed: fc.constantFrom(...theme.foreign) }),
    },
    {
      weight: theme.dense ? 8 : 2,
      arbitrary: fc.record({
        t: of("meanwhile"),
        request: fc.constantFrom(...theme.faulted),
        passes: fc.nat(2),
        deed: fc.constantFrom(...theme.foreign),
      }),
    },
    {
      weight: theme.dense ? 8 : 4,
      arbitrary: fc.record({
        t: of("api_fault"),
        request: fc.constantFrom(...theme.faulted),
        fault: fc.constantFrom(...theme.faults),
        landsAfterMs: fc.constantFrom(10, 700, 20_000, 45_000),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        t: of("guest_fault"),
        verb: fc.constantFrom<GuestVerb>("fence", "probe", "execute", "health", "flush"),
        fault: fc.constantFrom<GuestFault>(...guestFaults),
      }),
    },
    { weight: 2, arbitrary: fc.record({ t: of("controller"), does: fc.constantFrom("stall", "catch_up", "restart") }) },
    { weight: 1, arbitrary: fc.record({ t: of("watches"), does: fc.constantFrom("drop", "stall", "catch_up") }) },
    { weight: 3, arbitrary: fc.record({ t: of("node"), steps: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 2, arbitrary: fc.record({ t: of("node_habit"), works: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ t: of("restart"), replica: fc.nat(1) }) },
    { weight: 5, arbitrary: fc.record({ t: of("pass"), ms: fc.constantFrom(0, 50, 1_000, 11_000, 130_000) }) },
    { weight: 1, arbitrary: fc.record({ t: of("clock_back"), ms: fc.constantFrom(1, 60_000) }) },
  ) as fc.Arbitrary<Step>;
}

/** How a workspace stands when a sequence begins. */
export const prologues = ["none", "running", "suspended"] as const;
export type Prologue = (typeof prologues)[number];

export interface Sequence {
  readonly theme: Theme;
  readonly prologue: Prologue;
  readonly steps: readonly Step[];
}

/** One sequence: its theme, how it begins, and its steps. */
export const sequences: fc.Arbitrary<Sequence> = fc
  .constantFrom(...themes.flatMap((theme) => Array<Theme>(theme.weight ?? 1).fill(theme)))
  .chain((theme) =>
    fc.record({
      theme: fc.constant(theme),
      prologue: fc.constantFrom(...prologues),
      steps: fc.array(stepOf(theme), { minLength: 30, maxLength: 45 }),
    }),
  );
