import { setTimeout as delay } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import {
  AttachMode,
  type SessionExit,
  type SessionService,
  type TerminalAttached,
  type TerminalStartSchema,
  TerminalVerb,
} from "@holdfast/api/holdfast/v1/session_pb";
import { Outbox } from "./outbox.ts";
import { UnconfirmedInput } from "./unconfirmed-input.ts";

/** Who is told what a terminal does. */
export interface TerminalScreen {
  /** What the program wrote. Resolves when more may come. */
  show(data: Uint8Array): Promise<void>;
  /** So many bytes of it are missing here. */
  gap(bytes: bigint): void;
  /** So many bytes that were typed may have been written or not. */
  unsure(bytes: number): void;
  /** The stream is lost, and tried again. Told of every outage, once. */
  lost(why: unknown): void;
  /** It is back. */
  back(): void;
  /** Input may be typed again, after `type` answered that there is no room. */
  room(): void;
}

export type TerminalEnd = { readonly t: "exited"; readonly exit: SessionExit } | { readonly t: "detached" };

type TerminalSize = { readonly columns: number; readonly rows: number };

/** How a terminal begins. Its id is the caller's, so that it can be begun again. */
export interface TerminalBegin {
  readonly workspaceId: string;
  readonly sessionId: string;
  readonly verb: TerminalVerb;
  readonly mode?: AttachMode;
  readonly program?: {
    readonly command: string;
    readonly args: string[];
    readonly cwd: string;
    readonly env: Record<string, string>;
  };
  readonly fromOffset?: bigint;
  readonly persistent?: boolean;
  readonly size?: TerminalSize;
}

/** Input that may be under way. */
const roomBytes = 256 * 1024;
const inputMaxBytes = 64 * 1024;
const againFirstMs = 100;
const againMaxMs = 2_000;

/**
 * A terminal as its user sees it: one program, however many streams it takes. Output is shown once and in order; input is sent again
 * until it is confirmed, and written once.
 */
export class RemoteTerminal {
  readonly #client: Client<typeof SessionService>;
  readonly #start: TerminalBegin;
  readonly #screen: TerminalScreen;
  readonly #signal: AbortSignal;
  readonly #detached = new AbortController();
  readonly #typed = new UnconfirmedInput();
  /** Of the stream that stands and is attached. */
  #outbox: Outbox | undefined;
  #attached: TerminalAttached | undefined;
  #size: TerminalSize | undefined;
  #offset: bigint;
  #detaching = false;
  #full = false;

  constructor(
    client: Client<typeof SessionService>,
    start: TerminalBegin,
    screen: TerminalScreen,
    signal: AbortSignal,
  ) {
    this.#client = client;
    this.#start = start;
    this.#screen = screen;
    this.#signal = signal;
    this.#size = start.size;
    this.#offset = start.fromOffset ?? 0n;
  }

  /** Types; false when no more should be typed until `room` is told. Before it is attached nothing may be typed. */
  type(data: Uint8Array): boolean {
    for (let at = 0; at < data.byteLength; at += inputMaxBytes) {
      const value = data.slice(at, at + inputMaxBytes);
      this.#typed.add(value);
      this.#outbox?.send({ request: { case: "input", value } });
    }
    this.#full = this.#typed.bytes >= roomBytes;
    return !this.#full;
  }

  /** What was typed and is not known to be written. */
  get unconfirmedBytes(): number {
    return this.#typed.bytes;
  }

  resize(size: TerminalSize): void {
    this.#size = size;
    this.#outbox?.send({ request: { case: "resize", value: size } });
  }

  /** Lets the terminal go; its program goes on. Without a stream that ends it at once: the attachment is forgotten by itself. */
  detach(): void {
    this.#detaching = true;
    if (this.#outbox === undefined) this.#detached.abort();
    else this.#outbox.send({ request: { case: "detach", value: {} } });
  }

  /** Follows the terminal to its end. Throws what trying again does not help against. `onAttached`: from then on it may be typed. */
  async run(onAttached: (attached: TerminalAttached) => void): Promise<TerminalEnd> {
    let outage: { readonly sinceMs: number; attempts: number } | undefined;
    for (;;) {
      try {
        const end = await this.#stream((attached) => {
          const isFirst = this.#attached === undefined;
          this.#take(attached);
          if (outage !== undefined) this.#screen.back();
          outage = undefined;
          if (isFirst) onAttached(attached);
        });
        if (end !== undefined) return end;
        if (this.#detaching) return { t: "detached" };
      } catch (error) {
        if (this.#signal.aborted) throw error;
        if (this.#detaching) return { t: "detached" };
        if (hasReason(error, "ATTACHMENT_NOT_FOUND") && this.#attached?.attachmentId) {
          this.#attached.attachmentId = ""; // Too late for it: another one, and what was typed meanwhile is told as unsure.
          continue;
        }
        // A service that was never there is not waited for.
        if (!mayPass(error) || (this.#attached === undefined && !hasAnyReason(error))) throw error;
        if (outage === undefined) {
          outage = { sinceMs: performance.now(), attempts: 0 };
          this.#screen.lost(error);
        }
      } finally {
        this.#outbox = undefined;
      }
      const attempt = outage ? outage.attempts++ : 0;
      const waitMs = Math.min(againMaxMs, againFirstMs * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2);
      const either = AbortSignal.any([this.#signal, this.#detached.signal]);
      await delay(waitMs, undefined, { signal: either }).catch(() => undefined);
      if (this.#signal.aborted) throw this.#signal.reason;
      if (this.#detached.signal.aborted) return { t: "detached" };
    }
  }

  /** One stream, to its end; undefined when it ended without the program's. */
  async #stream(onAttached: (attached: TerminalAttached) => void): Promise<TerminalEnd | undefined> {
    const outbox = new Outbox();
    outbox.send({ request: { case: "start", value: this.#startNow() } });
    try {
      for await (const { event } of this.#client.terminal(outbox, { signal: this.#signal })) {
        switch (event.case) {
          case "attached":
            this.#outbox = outbox;
            onAttached(event.value);
            break;
          case "data":
            await this.#screen.show(event.value.data);
            this.#offset = event.value.offset + BigInt(event.value.data.byteLength);
            break;
          case "gap":
            this.#screen.gap(event.value.to - event.value.from);
            this.#offset = event.value.to;
            break;
          case "typed":
            this.#confirm(event.value.nextInputSequence);
            break;
          case "exited":
            if (event.value.exit !== undefined) return { t: "exited", exit: event.value.exit };
        }
      }
      return undefined;
    } finally {
      outbox.close();
    }
  }

  /** Until it is attached the start may be repeated: under its own id it opens one program, and joins it when it runs. */
  #startNow(): MessageInitShape<typeof TerminalStartSchema> {
    const size = this.#size === undefined || this.#start.mode === AttachMode.OBSERVE ? {} : { size: this.#size };
    if (this.#attached === undefined) return { ...this.#start, ...size };
    const { workspaceId, sessionId, mode } = this.#start;
    const { attachmentId, bootId } = this.#attached;
    return {
      workspaceId,
      sessionId,
      verb: TerminalVerb.ATTACH,
      mode: mode ?? AttachMode.EXCLUSIVE,
      fromOffset: this.#offset,
      attachmentId,
      expectedBootId: bootId,
      ...size,
    };
  }

  #take(attached: TerminalAttached): void {
    const isSame = this.#attached?.attachmentId === attached.attachmentId;
    this.#attached = attached;
    const { nextInputSequence } = attached;
    if (isSame) {
      for (const value of this.#typed.resume(nextInputSequence)) {
        this.#outbox?.send({ request: { case: "input", value } });
      }
    } else {
      const unsure = this.#typed.restart(nextInputSequence);
      if (unsure > 0) this.#screen.unsure(unsure);
    }
    this.#confirm(nextInputSequence);
  }

  #confirm(next: bigint): void {
    this.#typed.confirm(next);
    if (!this.#full || this.#typed.bytes >= roomBytes) return;
    this.#full = false;
    this.#screen.room();
  }
}

function reasonOf(error: unknown): string | undefined {
  return error instanceof ConnectError ? error.findDetails(ErrorInfoSchema)[0]?.reason : undefined;
}

function hasReason(error: unknown, reason: string): boolean {
  return reasonOf(error) === reason;
}

function hasAnyReason(error: unknown): boolean {
  return reasonOf(error) !== undefined;
}

/** What another try may help against: a lost connection, and what the service says so of. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return false;
  // A start that may have been carried out is repeated: under its own id it opens nothing twice.
  if (error.code === Code.Unavailable || hasReason(error, "SESSION_OUTCOME_UNKNOWN")) return true;
  const isTransport = [Code.Aborted, Code.Canceled, Code.Internal, Code.Unknown, Code.DeadlineExceeded].includes(
    error.code,
  );
  return isTransport && !hasAnyReason(error);
}
