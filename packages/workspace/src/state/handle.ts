import { SingleFlight } from "@holdfast/async";
import {
  type BootId,
  type HolderEpoch,
  type PodUid,
  type SandboxUid,
  sandboxNameOf,
  type WorkspaceId,
} from "@holdfast/contract";
import type { WorkspaceDeps } from "../deps.ts";
import { GuestMoves } from "../events/guest-moves.ts";
import type { HandleNews, StartStep, WorkspaceEvent } from "../events/workspace-event.ts";
import { WorkspaceEvents } from "../events/workspace-events.ts";
import type { Found } from "../fence/gate.ts";
import { holderEpochOf } from "../fence/holder-epoch.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import type { WorkspaceView } from "../view.ts";
import type { OnStartFailure, Origin } from "../wishes.ts";
import type { Fact, News } from "./facts.ts";
import { FreshLook } from "./fresh-look.ts";
import { GuestLeases } from "./guest-leases.ts";
import { LateCreates } from "./late-creates.ts";
import { LiveCalls } from "./live-calls.ts";
import type { Rebind } from "./rebind.ts";
import { boundGuestOf, leadsSomewhere, next } from "./transitions.ts";
import { UnresolvedWrites } from "./unresolved-writes.ts";
import type { BoundGuest, WorkspaceState } from "./workspace-state.ts";

/** What reads have shown of the object; kept for views and for telling this workspace from another of its name. */
export interface KnownObject {
  readonly sandboxUid: SandboxUid;
  readonly template: string | undefined;
  readonly revision: string | undefined;
  readonly root: string | undefined;
  /** The stored epoch; undefined when it cannot be read as a number. */
  readonly holderEpoch: HolderEpoch | undefined;
}

/** What moved the state last, and under which epoch, where a call that carried one did. */
export interface LastTransition {
  readonly cause: string;
  readonly at: number;
  readonly epoch: HolderEpoch | undefined;
}

/** What a handle last confirmed: while mode and marks still stand, nobody of this contract wrote the mode since (L5). */
export interface ConfirmedMode {
  readonly mode: SandboxReading["mode"];
  readonly writtenBy: string | undefined;
  readonly modeChangedAt: string | undefined;
  readonly generation: number;
}

/** The record behind a Workspace: its state, and what recipes share. Only commit() and observe() move the state. */
export class Handle {
  readonly id: WorkspaceId;
  readonly name: string;
  readonly deps: WorkspaceDeps;
  /** Shared by the handles of this process. */
  readonly lateCreates: LateCreates;
  /** Shared likewise: what callers hold open. */
  readonly live: LiveCalls;
  readonly leases = new GuestLeases();
  readonly unresolved = new UnresolvedWrites();
  /** Pods that a suspend of ours, known applied, took away: not bound again though they may still look ready (L15). */
  readonly left = new Set<PodUid>();
  /** One look for a guest at a time, shared by the calls that need it. */
  readonly rebinding = new SingleFlight<PodUid | "unbound", Rebind>();
  /** One re-read at a time after calls that failed together. */
  readonly rereading = new SingleFlight<PodUid, void>();

  /** What this handle noticed without having asked for it. */
  readonly events: WorkspaceEvents;
  /** Told of every state, event and step of a start; set once, by whoever makes the handle. */
  tell: (news: HandleNews) => void = nobodyListens;
  /** Reads where the workspace stands and takes it in; never rejects. Set once, by whoever makes the handle. */
  lookAgain: () => Promise<unknown> = async () => undefined;
  /** Which guest was held last. */
  readonly guestMoves = new GuestMoves();

  /** Looks at the object for who needs one that begins after they ask. */
  readonly freshLook = new FreshLook<Found>();

  /** Set by the queue: true while a recipe runs. */
  inTransition = false;
  /** Kept by the queue: starts that run or wait for their turn. */
  startsUnderWay = 0;
  /** The epoch of the call whose recipe runs, once its gate let it pass; undefined: it carries none. Cleared by the queue. */
  actingUnder: HolderEpoch | undefined;
  /** How it stood when the start that runs had its guest: by the time of its answer news may have come. Cleared by the queue. */
  startedAs: Pick<WorkspaceView, "state" | "transition" | "identity" | "pod"> | undefined;
  /** What a recipe waits for, for people. */
  waitingFor: string | undefined;
  known: KnownObject | undefined;
  claimUids: Readonly<Record<string, string>> = {};
  /** Of the workspace's template as it was last read here: the hash of its pod template as it would be written (L32). */
  templateRevision: string | undefined;
  confirmed: ConfirmedMode | undefined;
  /** What stood when its delete was last asked for here: its pods and claims are waited for though it is gone itself. */
  deleteAsked: SandboxReading | undefined;
  /** Of the call that opened the handle. */
  origin: Origin | undefined;
  onStartFailure: OnStartFailure = "suspend_if_woken";

  /** Replaced only by commit() and observe(). Read it once per step: it may change across any await. */
  #state: WorkspaceState = { t: "opening" };
  #transition: LastTransition;

  constructor(id: WorkspaceId, deps: WorkspaceDeps, lateCreates = new LateCreates(), live = new LiveCalls()) {
    this.lateCreates = lateCreates;
    this.live = live;
    this.id = id;
    this.name = sandboxNameOf(id);
    this.deps = deps;
    this.events = new WorkspaceEvents(deps.clock);
    this.#transition = { cause: "opening", at: deps.clock.now(), epoch: undefined };
  }

  get state(): WorkspaceState {
    return this.#state;
  }

  get transition(): LastTransition {
    return this.#transition;
  }

  /** Takes a fact that the running recipe confirmed. */
  commit(fact: Fact): void {
    // Seen gone after a suspend of ours: the next pod replaces nothing.
    if (fact.t === "suspendAccepted" || fact.t === "podGone") this.guestMoves.expected();
    this.#enter(next(this.#state, fact), fact.t, this.actingUnder);
  }

  /** Takes news that may be late. False: dropped, because it is about another pod, or the recipe that runs will see for itself. */
  observe(news: News): boolean {
    if (news.was !== heldPodOf(this.#state) || !leadsSomewhere(this.#state.t, news.t)) return false;
    if (this.inTransition && endsHandle(news)) return false;
    this.#enter(next(this.#state, news), news.t);
    return true;
  }

  /** Keeps the boot id that the bound guest now reports; replies of a guest that was left change nothing (L40). */
  noteBootId(of: BoundGuest, bootId: BootId): void {
    const state = this.#state;
    if (state.t !== "active" || state.bound.guest !== of.guest || state.bound.bootId === bootId) return;
    this.deps.log.info({ workspaceId: this.id, was: state.bound.bootId, bootId }, "the guest is another process now");
    const bound = { ...state.bound, bootId };
    this.#state = { t: "active", bound };
    this.#tellOf(bound);
  }

  /** Keeps what an uncached read showed. `asOf`: taken from `unresolved` before the read; left out for the answer to a write. */
  remember(reading: SandboxReading, asOf?: number): void {
    this.unresolved.settleBy(reading, asOf);
    this.#keep(reading);
  }

  #keep(reading: SandboxReading): void {
    const epoch = holderEpochOf(reading.stamps.holderEpoch);
    this.known = {
      sandboxUid: reading.uid,
      template: reading.template,
      revision: reading.stamps.podTemplateHash,
      root: reading.disk.usable ? reading.disk.root : undefined,
      holderEpoch: epoch === "unreadable" ? undefined : epoch,
    };
  }

  /** Keeps the epoch that the bound guest confirmed; what a guest that was left confirms changes nothing. */
  noteFenced(of: BoundGuest, fenced: HolderEpoch): void {
    const state = this.#state;
    if (state.t === "active" && state.bound.guest === of.guest && state.bound.fenced < fenced) {
      this.#state = { t: "active", bound: { ...state.bound, fenced } };
    }
  }

  /** A start has come this far. A guest that is looked for in a call's rebind is no start. */
  progressed(step: StartStep): void {
    if (this.#state.t === "opening" || this.#state.t === "resuming") this.tell({ t: "progress", step });
  }

  /** Tells everybody who listens what was noticed. */
  publish(event: WorkspaceEvent): void {
    this.events.publish(event);
    this.tell({ t: "event", event });
  }

  /** Notes what stands as confirmed by this handle: a reading that it remembers already. */
  confirm(reading: SandboxReading): void {
    this.#keep(reading);
    const { writtenBy, modeChangedAt } = reading.stamps;
    this.confirmed = { mode: reading.mode, writtenBy, modeChangedAt, generation: reading.generation };
  }

  /** True while nobody wrote since this handle confirmed the mode (L5). */
  stillConfirmed(reading: SandboxReading): boolean {
    return (
      this.confirmed !== undefined &&
      this.confirmed.mode === reading.mode &&
      this.confirmed.writtenBy === reading.stamps.writtenBy &&
      this.confirmed.modeChangedAt === reading.stamps.modeChangedAt
    );
  }

  /** True while nobody changed what is asked for at all: two changes of the mode in one millisecond may leave the same marks. */
  isUnchangedSinceConfirmed(reading: SandboxReading): boolean {
    return this.stillConfirmed(reading) && this.confirmed?.generation === reading.generation;
  }

  #enter(state: WorkspaceState, cause: string, epoch?: HolderEpoch): void {
    const before = boundGuestOf(this.#state)?.guest;
    this.#state = state;
    this.#transition = { cause, at: this.deps.clock.now(), epoch };
    this.waitingFor = undefined;
    if ((state.t === "active" || state.t === "closing") && state.bound) this.#tellOf(state.bound);
    this.tell({ t: "entered", state: state.t });
    if (before === undefined || before === boundGuestOf(state)?.guest) return;
    if (state.t === "suspended" || state.t === "gone") this.leases.end(before);
    else this.leases.retire(before);
  }

  #tellOf(bound: BoundGuest): void {
    const event = this.guestMoves.bound(bound);
    if (event) this.publish(event);
  }
}

function nobodyListens(): void {}

/** The pod that news must be about. */
export function heldPodOf(state: WorkspaceState): PodUid | undefined {
  if (state.t === "active") return state.bound.pod.uid;
  if (state.t === "closing") return state.bound?.pod.uid;
  return state.t === "unbound" ? state.lost : undefined;
}

function endsHandle(news: News): boolean {
  return news.t === "vanished" || news.t === "deletionSeen";
}
