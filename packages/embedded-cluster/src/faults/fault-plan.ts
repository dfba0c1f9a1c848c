import { type Clock, pause, systemClock, untilAborted } from "../clock.ts";
import { type Fate, reasonOf, refusalOf } from "./fate.ts";
import {
  type FaultAction,
  type FaultedRequest,
  type FaultMatch,
  type FaultRule,
  isMeant,
  type Loss,
} from "./fault-rule.ts";
import type {
  AddedRule,
  Faults,
  HeldRequest,
  HoldWish,
  LateRequest,
  RequestRecord,
  RuleReport,
  Stall,
  WatchRule,
} from "./faults.ts";
import { Held, Late } from "./held-request.ts";
import { NodeFaultRules, type StandingNodeRule } from "./node-fault-rules.ts";
import { type OpenWatch, WatchFaults } from "./watch-faults.ts";

interface Entry {
  readonly id: string;
  readonly rule: FaultRule;
  readonly decide: (request: FaultedRequest) => Fate | Promise<Fate>;
  readonly letGo: () => void;
  toPass: number;
  left: number;
  met: number;
}

/** The plan behind the fault knobs: callers' edges ask it of each request, tests and people change it. */
export class FaultPlan implements Faults {
  readonly node: NodeFaultRules;
  readonly #clock: Clock;
  readonly #entries: Entry[] = [];
  readonly #others = new Map<
    string,
    { readonly report: () => RuleReport; readonly undo: () => void | Promise<void> }
  >();
  readonly #watches: WatchFaults;
  /** The ways to let go of single requests that wait for the test. */
  readonly #waiting = new Set<() => void>();
  readonly #records = new Set<{ readonly match: FaultMatch; readonly requests: FaultedRequest[] }>();
  readonly #stopping = new AbortController();
  readonly #onError: (error: unknown) => void;
  #lastId = 0;

  /** `onError` is told when what a rule did cannot be mended. */
  constructor(clock: Clock = systemClock, onError: (error: unknown) => void = rethrow) {
    this.#clock = clock;
    this.#onError = onError;
    this.#watches = new WatchFaults(clock);
    this.node = new NodeFaultRules(clock, (standing) => this.#addNodeRule(standing));
  }

  /** Aborts when the cluster stops: nobody waits any longer. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** True while no request has to be told to the plan. */
  get isIdle(): boolean {
    return this.#entries.length === 0 && this.#records.size === 0;
  }

  /** What becomes of a request: undefined, at once, where no rule is about it. */
  decide(request: FaultedRequest): Fate | Promise<Fate> | undefined {
    for (const { match, requests } of this.#records) if (isMeant(match, request)) requests.push(request);
    for (const entry of this.#entries) {
      if (entry.left === 0 || !isMeant(entry.rule.match, request)) continue;
      if (entry.toPass > 0) {
        entry.toPass--;
        continue;
      }
      entry.left--;
      entry.met++;
      return entry.decide(request);
    }
    return undefined;
  }

  openWatch(request: FaultedRequest): OpenWatch {
    return this.#watches.open(request);
  }

  /** Lets go of everything that waits: the cluster stops. */
  stop(): void {
    this.#stopping.abort();
    this.clear();
  }

  add(rule: FaultRule): AddedRule {
    const removed = new AbortController();
    const decide = (): Fate | Promise<Fate> => this.#act(rule.action, removed.signal);
    return this.#enter(rule, decide, () => removed.abort());
  }

  list(): readonly RuleReport[] {
    const rules = this.#entries.map(({ id, rule, met }) => ({ id, rule, met }));
    return [...rules, ...[...this.#others.values()].map((other) => other.report())];
  }

  remove(id: string): boolean {
    const index = this.#entries.findIndex((entry) => entry.id === id);
    if (index >= 0) {
      for (const entry of this.#entries.splice(index, 1)) entry.letGo();
      return true;
    }
    const other = this.#others.get(id);
    Promise.resolve(other?.undo()).catch(this.#onError);
    this.#others.delete(id);
    return other !== undefined;
  }

  clear(): void {
    for (const { id } of this.list()) this.remove(id);
    for (const letGo of this.#waiting) letGo();
  }

  hold(match: FaultMatch = {}, wish: HoldWish = {}): HeldRequest {
    const held = new Held();
    const rule: FaultRule = { match, action: { t: "hold" }, count: 1, after: wish.after ?? 0 };
    const decide = (request: FaultedRequest): Promise<Fate> => {
      entry.remove(); // one request is held, and a rule that is used up would be looked at for ever
      const fate = held.fate(request);
      this.#letGoBefore(fate, () => held.letGo());
      return fate;
    };
    const entry = this.#enter(rule, decide, () => undefined);
    return held;
  }

  late(match: FaultMatch = {}, wish: HoldWish & { readonly loss?: Loss } = {}): LateRequest {
    const arrived = Promise.withResolvers<FaultedRequest>();
    const late = new Late(arrived.promise);
    const { loss = "cut", after = 0 } = wish;
    const rule: FaultRule = { match, action: { t: "applyLate", ms: Number.POSITIVE_INFINITY, loss }, count: 1, after };
    const decide = (request: FaultedRequest): Fate => {
      isMet = true;
      entry.remove();
      arrived.resolve(request);
      this.#letGoBefore(late.later.due, () => late.letGo());
      return { t: "applyLate", loss, later: late.later };
    };
    let isMet = false;
    const entry = this.#enter(rule, decide, () => {
      if (!isMet) late.giveUp();
    });
    return late;
  }

  dropWatches(match: FaultMatch = {}): number {
    return this.#watches.drop(match);
  }

  stallWatches(match: FaultMatch = {}): Stall {
    return this.#holdWatches(match, undefined);
  }

  delayWatches(ms: number, match: FaultMatch = {}): Stall {
    return this.#holdWatches(match, ms);
  }

  record(match: FaultMatch = {}): RequestRecord {
    const record = { match, requests: [] as FaultedRequest[] };
    this.#records.add(record);
    return { requests: record.requests, stop: () => this.#records.delete(record) };
  }

  async #act(action: FaultAction, removed: AbortSignal): Promise<Fate> {
    switch (action.t) {
      case "fail": {
        const { code, reason = reasonOf(code), message = "a fault rule says so", retryAfterSeconds } = action;
        return { t: "fail", error: refusalOf(code, reason, message, retryAfterSeconds) };
      }
      case "delay":
        await pause(this.#clock, action.ms, AbortSignal.any([removed, this.stopping]));
        return { t: "continue" };
      case "hold":
        await untilAborted(AbortSignal.any([removed, this.stopping]));
        return { t: "continue" };
      case "dropUnapplied":
        return { t: "dropUnapplied", loss: action.loss ?? "cut" };
      case "applyThenDrop":
        return { t: "applyThenDrop", loss: action.loss ?? "cut" };
      case "applyLate": {
        const due = pause(this.#clock, action.ms, AbortSignal.any([removed, this.stopping]));
        const later = { due: due.then(() => !this.stopping.aborted), landed: () => undefined };
        return { t: "applyLate", loss: action.loss ?? "cut", later };
      }
    }
  }

  #enter(rule: FaultRule, decide: Entry["decide"], letGo: () => void): AddedRule {
    const id = this.#nextId();
    const { after = 0, count = Number.POSITIVE_INFINITY } = rule;
    this.#entries.push({ id, rule, decide, letGo, toPass: after, left: count, met: 0 });
    return { id, remove: () => void this.remove(id) };
  }

  /** Has a request that waits for the test let go by a clear, unless the test decides before. */
  #letGoBefore(decided: Promise<unknown>, letGo: () => void): void {
    this.#waiting.add(letGo);
    void decided.then(() => this.#waiting.delete(letGo));
  }

  #holdWatches(watches: FaultMatch, delayMs: number | undefined): Stall {
    const id = this.addWatchRule({ watches, delayMs });
    return { undo: () => void this.remove(id) };
  }

  /** Adds a rule that holds watches up, and gives its id. */
  addWatchRule(rule: WatchRule): string {
    const hold = this.#watches.hold(rule.watches, rule.delayMs);
    const id = this.#nextId();
    this.#others.set(id, { report: () => ({ id, rule, met: hold.met }), undo: () => this.#watches.undo(hold) });
    return id;
  }

  /** The id of a node rule that stands. */
  idOf(standing: StandingNodeRule): string | undefined {
    return [...this.#others].find(([, other]) => other.undo === standing.undo)?.[0];
  }

  #addNodeRule(standing: StandingNodeRule): void {
    const id = this.#nextId();
    this.#others.set(id, { report: () => ({ id, rule: standing.rule, met: standing.met }), undo: standing.undo });
    standing.undone.addEventListener("abort", () => this.#others.delete(id), { once: true });
  }

  #nextId(): string {
    this.#lastId++;
    return `f${this.#lastId}`;
  }
}

function rethrow(error: unknown): never {
  throw error;
}
