import { randomUUID } from "node:crypto";
import type { Clock } from "@holdfast/async";
import { attachmentKeptMs, attachmentsRememberedMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import { SequencedInput } from "./sequenced-input.ts";

export type AttachMode = "exclusive" | "observe";

/** The stream that carries an attachment. `end` has it answer with this. */
export interface AttachedStream {
  readonly end: (why: AnsweredError) => void;
}

/** One reader of a session, by an id that the guest minted, or the one who opened it. */
export interface Attachment {
  readonly id: string;
  readonly mode: AttachMode;
  /** Of an exclusive one. */
  readonly input: SequencedInput | undefined;
}

interface Kept extends Attachment {
  stream: AttachedStream | undefined;
  cancelExpiry: () => void;
  /** Lets whoever watches over its epoch forget it. */
  forget: () => void;
}

export interface TakeWish {
  readonly mode: AttachMode;
  /** "": a new one. */
  readonly attachmentId: string;
  readonly stream: AttachedStream;
  /** Told how to end the attachment when another holder takes the guest; answers how to forget that. Throws when it has already. */
  readonly whileHeld: (end: (why: AnsweredError) => void) => () => void;
}

export interface AttachmentsOptions {
  readonly sessionId: string;
  readonly write: (bytes: Uint8Array) => number;
  readonly clock: Clock;
  /** An exclusive attachment has a stream now, or none has any more; `byClient`: its client ended it. */
  readonly onAttended: (attended: boolean, byClient: boolean) => void;
}

/** The attachment that whoever opens a session has reserved. */
export interface Reservation extends Pick<TakeWish, "whileHeld"> {
  readonly attachmentId: string;
}

/** Who reads one session: at most one exclusively, any number as observers. Each outlives its stream for a while (G18, G19). */
export class Attachments {
  readonly #options: AttachmentsOptions;
  readonly #kept = new Map<string, Kept>();
  /** Why attachments are over that their clients may still ask for, the oldest first. */
  readonly #over = new Map<string, AnsweredError>();
  #exclusive: Kept | undefined;

  constructor(options: AttachmentsOptions) {
    this.#options = options;
  }

  /** An exclusive attachment has a stream. */
  get isAttended(): boolean {
    return this.#exclusive?.stream !== undefined;
  }

  /** There is one of this id. */
  has(id: string): boolean {
    return this.#kept.has(id);
  }

  /** Makes an exclusive one for whoever opens the session, as one whose stream was lost. Throws as `whileHeld`. */
  reserve({ attachmentId, whileHeld }: Reservation): void {
    this.#make({ mode: "exclusive", whileHeld }, attachmentId);
  }

  /** What has no stream is kept for its time from now on: the program runs. */
  keep(): void {
    for (const kept of this.#kept.values()) if (kept.stream === undefined) this.#expireLater(kept);
  }

  /** Makes an attachment, or takes one up again. A new exclusive one displaces the former. In one step; throws AnsweredError. */
  take(wish: TakeWish): Attachment {
    const attachment = wish.attachmentId === "" ? this.#make(wish) : this.#resume(wish);
    attachment.cancelExpiry();
    attachment.stream = wish.stream;
    if (attachment.mode === "exclusive") this.#options.onAttended(true, false);
    return attachment;
  }

  /** The stream of an attachment is over. Nothing, if another stream carries it by now. */
  leave(attachment: Attachment, stream: AttachedStream, clientClosed: boolean): void {
    const kept = this.#kept.get(attachment.id);
    if (kept?.stream !== stream) return;
    kept.stream = undefined;
    if (clientClosed) this.#remove(kept, this.#letGo(kept.id));
    else {
      this.#expireLater(kept);
      this.#boundKept();
    }
    if (kept.mode === "exclusive") this.#options.onAttended(false, clientClosed);
  }

  /** Ends an attachment at its client's wish, its stream as well. Returns what it was. */
  detach(id: string, clientClosed: boolean): AttachMode {
    const kept = this.#require(id);
    const { stream } = kept;
    const why = this.#remove(kept, this.#letGo(id));
    stream?.end(why);
    if (kept.mode === "exclusive") this.#options.onAttended(false, clientClosed);
    return kept.mode;
  }

  /** The one of this id if it may write. Throws ATTACHMENT_NOT_FOUND, or why it is over. */
  requireExclusive(id: string): Attachment & { readonly input: SequencedInput } {
    const { input, mode } = this.#require(id);
    if (input === undefined) {
      throw new AnsweredError(
        "INVALID_REQUEST",
        `Nothing was done: attachment ${id} of session ${this.#options.sessionId} only observes. Attach exclusively to write.`,
        { field: "attachment_id" },
      );
    }
    return { id, mode, input };
  }

  /** The program is over: no attachment is of use any more. Streams end by themselves, once they have had all. */
  close(): void {
    const why = new AnsweredError(
      "ATTACHMENT_NOT_FOUND",
      `Nothing was done: the program of session ${this.#options.sessionId} has ended, and its attachments with it.`,
      { session_id: this.#options.sessionId },
    );
    for (const kept of [...this.#kept.values()]) this.#remove(kept, why);
  }

  #make({ mode, whileHeld }: Pick<TakeWish, "mode" | "whileHeld">, id: string = randomUUID()): Kept {
    const { write, clock } = this.#options;
    const kept: Kept = {
      id,
      mode,
      input: mode === "exclusive" ? new SequencedInput(write, clock) : undefined,
      stream: undefined,
      cancelExpiry: () => undefined,
      forget: () => undefined,
    };
    if (mode === "exclusive") {
      kept.forget = whileHeld((why) => this.#endBecause(kept, why)); // May throw: nobody is displaced then.
      if (this.#exclusive) this.#displace(this.#exclusive, kept.id);
      this.#exclusive = kept;
    }
    this.#kept.set(kept.id, kept);
    return kept;
  }

  #resume({ attachmentId, mode, whileHeld }: TakeWish): Kept {
    const kept = this.#require(attachmentId);
    if (kept.mode !== mode) {
      throw new AnsweredError("INVALID_REQUEST", `Nothing was done: attachment ${attachmentId} has another mode.`, {
        field: "mode",
      });
    }
    if (mode === "exclusive") {
      const forget = whileHeld((why) => this.#endBecause(kept, why));
      kept.forget();
      kept.forget = forget;
    }
    // A stream that has not noticed yet that its link is gone.
    kept.stream?.end(this.#displacement(kept, kept.id));
    return kept;
  }

  #expireLater(kept: Kept): void {
    kept.cancelExpiry();
    kept.cancelExpiry = this.#options.clock.schedule(attachmentKeptMs, () => this.#remove(kept, this.#letGo(kept.id)));
  }

  #displace(former: Kept, by: string): void {
    this.#endBecause(former, this.#displacement(former, by));
  }

  #displacement({ input, id }: Kept, by: string): AnsweredError {
    const last = (input?.next ?? 1) - 1;
    const { sessionId } = this.#options;
    return new AnsweredError(
      "ATTACHMENT_DISPLACED",
      `Attachment ${id} of session ${sessionId} was displaced by a newer one; its input up to ${last} was written. The program goes on.`,
      { session_id: sessionId, attachment_id: id, by, last_sequence: String(last) },
    );
  }

  #endBecause(kept: Kept, why: AnsweredError): void {
    const { stream } = kept;
    const told = this.#remove(kept, why);
    stream?.end(told);
    if (kept.mode === "exclusive" && stream !== undefined) this.#options.onAttended(false, false);
  }

  /** From here on its id answers `why`, in the words that this returns. */
  #remove(kept: Kept, why: AnsweredError): AnsweredError {
    this.#kept.delete(kept.id);
    kept.cancelExpiry();
    kept.forget();
    kept.stream = undefined;
    const told = kept.input?.end(why) ?? why;
    if (this.#exclusive === kept) this.#exclusive = undefined;
    this.#over.set(kept.id, told);
    const [oldest] = this.#over.keys();
    if (this.#over.size > attachmentsRememberedMax && oldest !== undefined) this.#over.delete(oldest);
    return told;
  }

  /** Those without a stream are bounded, the oldest observer goes first. */
  #boundKept(): void {
    const alone = [...this.#kept.values()].filter(({ stream, mode }) => stream === undefined && mode === "observe");
    for (const kept of alone.slice(0, Math.max(0, alone.length - attachmentsRememberedMax))) {
      this.#remove(kept, this.#letGo(kept.id));
    }
  }

  #require(id: string): Kept {
    const kept = this.#kept.get(id);
    if (kept !== undefined) return kept;
    throw this.#over.get(id) ?? this.#letGo(id);
  }

  #letGo(id: string): AnsweredError {
    const { sessionId } = this.#options;
    return new AnsweredError(
      "ATTACHMENT_NOT_FOUND",
      `Nothing was done: session ${sessionId} has no attachment ${id} (any more). Attach anew.`,
      { session_id: sessionId, attachment_id: id },
    );
  }
}
