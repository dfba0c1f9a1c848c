import { backoffMs, type Clock, Deadline, pause } from "@holdfast/async";
import { type BootId, type ExecutionId, guestDialTimeoutMs } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  AnsweredError,
  type CallerStream,
  type GuestLink,
  LinkLost,
  LinkProtocolError,
  NothingSent,
} from "@holdfast/guest-link";
import { type ExecutionEvent, GuestLost, LeaveRunning } from "@holdfast/workspace";
import { cancelUnheard } from "./cancel.ts";
import { EventQueue } from "./event-queue.ts";
import { ExecutionEvents } from "./execution-events.ts";
import { guestErrorOf } from "./guest-errors.ts";
import { Outage } from "./outage.ts";

const reattachBackoff = { firstMs: 50, maxMs: 2_000 };
/** A dial has its own deadline, and says more than this one, which only makes sure. */
const openTimeoutMs = 2 * guestDialTimeoutMs;

/** A link that lasted this long had recovered. */
const steadyMs = 1_000;

/** One stream to the command. */
interface Attachment {
  readonly stream: CallerStream;
  readonly queue: EventQueue;
}

/** What every opening of a stream to a command says. */
export interface Delivery {
  readonly executionId: ExecutionId;
  readonly fromOffset: bigint;
  readonly expectedBootId: string;
  readonly maxOutputBytes?: bigint;
}

/** Opens a stream to the command. */
export type Opener = (
  link: GuestLink,
  delivery: Delivery,
  events: ExecutionEvents,
  options: { readonly within: Deadline },
) => Promise<CallerStream>;

/** A command that is to be followed. */
export interface Followed {
  readonly executionId: ExecutionId;
  readonly fromOffset: number;
  /** Undefined: no bound on what is delivered. */
  readonly maxOutputBytes: number | undefined;
  /** Undefined: whichever agent process there is. */
  readonly expectedBootId: BootId | undefined;
  /** The command ends with this reader, when that is its client's wish. */
  readonly endsWithClient: boolean;
  /** The first stream, and every further one until it is known that the command exists. */
  readonly open: Opener;
  /** Those after. */
  readonly reopen: Opener;
  /** Those of a reader that may not change anything any more. */
  readonly observe: Opener;
}

/** Answers that leave reading as it was. */
const mayOnlyRead = new Set(["HOLDER_EPOCH_SUPERSEDED", "HOLDER_EPOCH_NOT_TAKEN", "HOLDER_EPOCH_REQUIRED"]);

/** One command, followed across lost connections to the same guest. */
export class FollowedCommand {
  readonly #link: GuestLink;
  readonly #clock: Clock;
  readonly #followed: Followed;
  readonly #signal: AbortSignal;
  readonly #onUnreached: () => void;
  #attachment: Attachment | undefined;
  /** The agent process that OPEN went to: on another one the same id would be another command. */
  #bootId: string | undefined;
  #started = false;
  #left = false;
  #attachedAtMs = 0;
  /** Up to where events were handed on. */
  #offset: number;
  #deliveredBytes = 0;
  /** Why it only observes from here on: another holder took the guest over meanwhile. */
  #refusal: AnsweredError | undefined;
  /** Undefined once the guest has spoken again. */
  #outage: Outage | undefined;

  /** `onUnreached`: called each time that the guest was not reached, while the command waits to be taken up again. */
  constructor(link: GuestLink, clock: Clock, followed: Followed, signal: AbortSignal, onUnreached: () => void) {
    this.#link = link;
    this.#clock = clock;
    this.#followed = followed;
    this.#offset = followed.fromOffset;
    this.#bootId = followed.expectedBootId;
    this.#signal = signal;
    this.#onUnreached = onUnreached;
  }

  /** Opens it and yields its events. See `Guest.execute`. */
  async *events(): AsyncGenerator<ExecutionEvent, void, undefined> {
    const signal = this.#signal;
    signal.throwIfAborted();
    // At once: the reader may be busy with an event, or never come back.
    const onAbort = (): void => {
      this.#attachment?.queue.end(asError(signal.reason));
      this.#leave();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    let exited = false;
    try {
      await this.#attach();
      while (!exited) {
        const event = await this.#next();
        exited = event.t === "exited";
        yield event;
      }
    } catch (error) {
      throw signal.aborted ? signal.reason : guestErrorOf(error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (!exited) this.#leave();
      // A guest that says the end but does not end its stream would keep the connection for ever.
      else this.#attachment?.stream.end({ clientClosed: false });
    }
  }

  /** The next event that the caller has not had, however often the link is lost on the way. */
  async #next(): Promise<ExecutionEvent> {
    for (;;) {
      try {
        const attachment = this.#attachment ?? (await this.#attach());
        const event = await attachment.queue.next();
        if (event === undefined) throw new LinkLost("the stream ended early");
        if (this.#isRepeated(event)) continue;
        this.#outage = undefined;
        return event;
      } catch (error) {
        this.#signal.throwIfAborted();
        await this.#endure(error);
      }
    }
  }

  /** True for a Started that the caller has had already. Takes note of where the event leads. */
  #isRepeated(event: ExecutionEvent): boolean {
    if (event.t === "started") {
      const repeated = this.#started;
      this.#started = true;
      this.#bootId = event.bootId;
      return repeated;
    }
    if (event.t === "output") {
      this.#offset = event.offset + event.data.length;
      this.#deliveredBytes += event.data.length;
    } else if (event.t === "gap") {
      this.#offset = event.to;
    }
    return false;
  }

  /** Opens a stream to the command. Until it is known to have started, the start is repeated: one id never runs twice. */
  async #attach(): Promise<Attachment> {
    const { executionId, maxOutputBytes, open, reopen, observe } = this.#followed;
    const queue = new EventQueue();
    const events = new ExecutionEvents(executionId, this.#offset, queue);
    const delivery = {
      executionId,
      fromOffset: BigInt(this.#offset),
      expectedBootId: this.#bootId ?? "",
      ...(maxOutputBytes === undefined
        ? {}
        : { maxOutputBytes: BigInt(Math.max(0, maxOutputBytes - this.#deliveredBytes)) }),
    };
    using within = new Deadline(this.#clock, openTimeoutMs, this.#signal);
    const opener = this.#refusal !== undefined ? observe : this.#started ? reopen : open;
    const stream = await opener(this.#link, delivery, events, { within });
    this.#bootId ??= stream.bootId;
    if (this.#signal.aborted) {
      stream.end({ clientClosed: this.#endsWithClient });
      throw this.#signal.reason;
    }
    queue.feedFrom(stream);
    this.#attachment = { stream, queue };
    this.#attachedAtMs = this.#clock.monotonicMs();
    return this.#attachment;
  }

  /** Waits before the next try to get back to the same guest, or throws because there is none: it has answered, or time is over. */
  async #endure(error: unknown): Promise<void> {
    this.#attachment = undefined;
    if (error instanceof AnsweredError && this.#observesAfter(error)) return;
    if (error instanceof LinkLost && error.cause instanceof LinkProtocolError) throw error;
    if (error instanceof LinkLost) {
      const nowMs = this.#clock.monotonicMs();
      // A silent command gives no other sign that a link had recovered; one that breaks at once had not.
      if (nowMs - this.#attachedAtMs > steadyMs) this.#outage = undefined;
      this.#outage ??= new Outage(error, nowMs);
    }
    const outage = this.#outage;
    if (outage === undefined) throw error;
    const lost = lossOf(error);
    if (lost !== undefined) {
      // Never NothingSent: OPEN went out before the outage, so the command may have run.
      const id = this.#followed.executionId;
      throw new GuestLost(`${lost} What became of execution ${id} is not known.`, error);
    }
    if (!(error instanceof LinkLost || error instanceof NothingSent)) throw error;
    const leftMs = outage.leftMs(this.#clock.monotonicMs());
    if (leftMs === undefined) throw this.#detached(outage);
    if (error instanceof NothingSent) this.#onUnreached();
    const waitMs = Math.min(leftMs, backoffMs(reattachBackoff, outage.tried(), Math.random()));
    await pause(this.#clock, waitMs, this.#signal);
  }

  /**
   * True: the guest answers that another holder has taken it over, and the command is still to be read. It may have been started
   * before, also where no answer to the start came: whether it exists is found out by looking, and if not, the refusal is the answer.
   */
  #observesAfter(answer: AnsweredError): boolean {
    if (this.#refusal !== undefined) {
      if (answer.reason === "EXECUTION_NOT_FOUND" && !this.#started) throw this.#refusal;
      return false;
    }
    const mayExist = this.#started || this.#outage !== undefined;
    if (!mayExist || !mayOnlyRead.has(answer.reason)) return false;
    this.#refusal = answer;
    return true;
  }

  get #endsWithClient(): boolean {
    return this.#followed.endsWithClient && !(this.#signal.reason instanceof LeaveRunning);
  }

  #detached(outage: Outage): HoldfastError {
    const { executionId } = this.#followed;
    return new HoldfastError("EXECUTION_DETACHED", {
      message:
        `The guest could not be reached again for ${outage.seconds(this.#clock.monotonicMs())} s. Execution ${executionId} was not ended: ` +
        `it may still run. Attach to it from offset ${this.#offset}.`,
      metadata: { execution_id: executionId, next_offset: String(this.#offset), started: String(this.#started) },
      cause: outage.cause,
    });
  }

  /** The client goes before the command's end. What becomes of the command is as it wished; losing a link never decides it. */
  #leave(): void {
    if (this.#left) return;
    this.#left = true;
    const clientClosed = this.#endsWithClient;
    if (this.#attachment !== undefined) this.#attachment.stream.end({ clientClosed });
    else if (clientClosed && this.#bootId !== undefined) {
      void cancelUnheard(this.#link, this.#clock, this.#followed.executionId, this.#bootId);
    }
  }
}

/** Why the guest that the command was started on will not be reached again; undefined while it may come back. */
function lossOf(error: unknown): string | undefined {
  if (error instanceof AnsweredError && error.reason === "GUEST_RESTARTED") {
    return "The guest's agent was restarted, and its new process knows nothing of the commands before.";
  }
  if (!(error instanceof NothingSent)) return undefined;
  if (error.why === "token-refused") return "Another guest is at the address now.";
  if (error.why === "closed" || error.why === "protocol-mismatch") return error.message;
  return undefined;
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
