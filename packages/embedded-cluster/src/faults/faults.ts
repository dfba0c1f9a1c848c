import type { FaultedRequest, FaultMatch, FaultRule, Loss } from "./fault-rule.ts";
import type { NodeFaults } from "./node-faults.ts";

/**
 * The fault knobs of an embedded cluster: what can be made to go wrong between its API and whoever calls it, and on its
 * node. Requests of every caller pass them, over the network (`by: "client"`) and in-process ("controller", "node"); the
 * API server's own housekeeping does not. The first rule that matches a request and is not used up decides.
 */
export interface Faults {
  readonly node: NodeFaults;

  /** Adds a rule behind those that stand. */
  add(rule: FaultRule): AddedRule;
  list(): readonly RuleReport[];
  /** Removes the rule of this id; what it holds goes on. False where there is none. */
  remove(id: string): boolean;
  /** Takes back every rule, stall and node rule; what is held goes on, what is late lands. */
  clear(): void;

  /** Holds the next matching request at the door, not carried out, until the test says what becomes of it. */
  hold(match?: FaultMatch, wish?: HoldWish): HeldRequest;
  /** Leaves the next matching request without an answer; it lands when the test says so. */
  late(match?: FaultMatch, wish?: HoldWish & { readonly loss?: Loss }): LateRequest;

  /** Ends matching watches that run, as a broken connection does. Returns how many. */
  dropWatches(match?: FaultMatch): number;
  /**
   * Matching watches, running and to come, stay open and deliver nothing until it is undone: the caller's view grows
   * old. Then they deliver everything, in order.
   */
  stallWatches(match?: FaultMatch): Stall;
  /** Matching watches deliver each event so much later. */
  delayWatches(ms: number, match?: FaultMatch): Stall;

  /** Notes every request from now on; for tests that count. */
  record(match?: FaultMatch): RequestRecord;
}

export interface AddedRule {
  readonly id: string;
  remove(): void;
}

export interface RuleReport {
  readonly id: string;
  /** A rule as it was added, or a stall or delay of watches, or a rule of the node. */
  readonly rule: FaultRule | WatchRule | NodeRule;
  /** How many requests, watches or pods it has met. */
  readonly met: number;
}

/** `delayMs` undefined: nothing is delivered at all. */
export interface WatchRule {
  readonly watches: FaultMatch;
  readonly delayMs: number | undefined;
}

export interface NodeRule {
  readonly node: "holdScheduling" | "delayStart" | "failImagePull" | "cutAddress";
  readonly pods: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
  readonly ms?: number;
  readonly message?: string;
}

export interface HoldWish {
  /** How many matching requests pass before. */
  readonly after?: number;
}

/** One request that is held. Exactly one of the ways on is taken; a second is an error. */
export interface HeldRequest {
  /** Resolves when a request has come; it is not carried out yet. */
  readonly reached: Promise<FaultedRequest>;
  /** Carried out and answered. */
  pass(): void;
  /** Refused, not carried out. */
  fail(code: number, reason?: string, message?: string): void;
  /** Carried out, and no answer. */
  applyThenDrop(loss?: Loss): void;
  /** Never carried out, and no answer. */
  drop(loss?: Loss): void;
  /** No answer now; `land` carries it out. */
  loseReply(loss?: Loss): LateRequest;
}

/** One request without an answer that can still be carried out. */
export interface LateRequest {
  /** Resolves when a request has come and its caller has been left without an answer. */
  readonly reached: Promise<FaultedRequest>;
  /** Carries it out. Resolves with what the server would have answered: below 400 it was applied; 0: no such request came. */
  land(): Promise<LateOutcome>;
  /** It is never carried out. */
  lose(): void;
}

export interface LateOutcome {
  readonly code: number;
  readonly message: string | undefined;
}

export interface Stall {
  /** Takes it back: what was kept is delivered. */
  undo(): void;
}

export interface RequestRecord {
  readonly requests: readonly FaultedRequest[];
  stop(): void;
}
