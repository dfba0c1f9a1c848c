import { backoffMs, type Clock, Deadline, pause } from "@holdfast/async";
import { type AttachmentId, attachmentIdOf, reattachWindowMs, type SessionId } from "@holdfast/contract";
import { hasReason } from "@holdfast/errors";
import { LeaveRunning } from "../ports/executions.ts";
import type { AttachSessionWish, OpenSessionWish, SessionEvent } from "../ports/sessions.ts";
import { isClientsFault } from "./feeding.ts";
import type { WorkspaceSessions } from "./sessions.ts";
import { type TerminalInput, Typing } from "./typing.ts";

const again = { firstMs: 50, maxMs: 2_000 };

/** How a terminal's stream begins. */
export type TerminalVerb = "open" | "attach" | "open_or_attach";

export interface TerminalWish {
  readonly verb: TerminalVerb;
  /** What is opened, under the same id. */
  readonly program: OpenSessionWish;
  readonly attach: AttachSessionWish;
}

/** One stream of a terminal: made once, and pulled once, though a handle that is over may have it begun on another. */
export class Terminal {
  readonly wish: TerminalWish;
  /** What its client sends, in order. It is pulled once the terminal is attached to. */
  readonly input: AsyncIterable<TerminalInput>;
  /** This stream has started the program. */
  opened = false;
  /** The attachment that the guest was asked to reserve for this stream's client, until that has it, or it is known to be none. */
  reserved: AttachmentId | undefined;

  constructor(wish: TerminalWish, input: AsyncIterable<TerminalInput>) {
    this.wish = wish;
    this.input = input;
  }
}

/** `typed`: all input before this sequence is in the terminal. */
export type TerminalEvent = SessionEvent | { readonly t: "typed"; readonly nextSequence: number };

/** A terminal's output, and what became of its client's input, as one sequence; each is asked for only when there is room. */
export async function* terminal(
  sessions: WorkspaceSessions,
  call: Terminal,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<TerminalEvent, void> {
  // The stream may end by its input, while output is awaited.
  const over = new AbortController();
  const onAbort = (): void => over.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const output = attached(sessions, call, clock, over.signal);
  let arrived: { readonly next: IteratorResult<SessionEvent> } | { readonly thrown: unknown } | undefined;
  let wake = (): void => undefined;
  const pull = (): void => {
    arrived = undefined;
    output.next().then(
      (next) => {
        arrived = { next };
        wake();
      },
      (thrown: unknown) => {
        arrived = { thrown };
        wake();
      },
    );
  };
  let typing: Typing | undefined;
  let told = 0;
  try {
    pull();
    for (;;) {
      if (typing !== undefined && typing.nextSequence > told) {
        told = typing.nextSequence;
        yield { t: "typed", nextSequence: told };
      } else if (typing?.detached) return;
      else if (arrived === undefined) {
        if (typing?.failure) {
          const { thrown } = typing.failure;
          // Not the client's end (L44), unless its request was at fault.
          if (!isClientsFault(thrown)) over.abort(new LeaveRunning());
          throw thrown;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if ("thrown" in arrived) {
        // The guest may end the stream before it answers that it has let go.
        if (typing?.detaching && hasReason(arrived.thrown, "ATTACHMENT_NOT_FOUND")) return;
        throw arrived.thrown;
      } else {
        const { next } = arrived;
        if (next.done) return;
        const event = next.value;
        if (event.t === "attached") {
          told = event.nextInputSequence;
          typing = Typing.begin(sessions, call, event, { clock, onChange: () => wake() });
        }
        yield event;
        pull();
      }
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    typing?.end();
    over.abort(new Error("the terminal's stream is over"));
    await output.return();
  }
}

/** Opens or attaches, whichever is wished; the events of the attachment. */
async function* attached(
  sessions: WorkspaceSessions,
  call: Terminal,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<SessionEvent, void> {
  try {
    for await (const event of openedOrAttached(sessions, call, signal)) {
      if (event.t === "attached") call.reserved = undefined; // From here on the attachment's own end says it.
      yield event;
    }
  } finally {
    if (call.reserved !== undefined && signal.aborted && !(signal.reason instanceof LeaveRunning)) {
      await letGoOpened(sessions, call.wish.program.sessionId, call.reserved, clock);
    }
  }
}

async function* openedOrAttached(
  sessions: WorkspaceSessions,
  call: Terminal,
  signal: AbortSignal,
): AsyncGenerator<SessionEvent, void> {
  const { verb, program, attach } = call.wish;
  // Only what this stream has opened may be bound to its client.
  const follow = (): AsyncGenerator<SessionEvent, void> =>
    sessions.attach(
      { ...attach, attachmentId: (call.opened ? call.reserved : undefined) ?? attach.attachmentId },
      call.opened && program.clientBound ? "with_client" : "kept",
      signal,
    );
  if (verb === "open") {
    if (!call.opened) await open(sessions, call, signal);
  } else if (verb === "open_or_attach" && !call.opened) {
    let begun = false;
    try {
      for await (const event of follow()) {
        begun = true;
        yield event;
      }
      return;
    } catch (error) {
      if (begun || !mayOpen(attach) || !hasReason(error, "SESSION_NOT_FOUND")) throw error;
    }
    try {
      await open(sessions, call, signal);
    } catch (error) {
      if (!hasReason(error, "SESSION_EXISTS")) throw error; // Somebody else was first.
    }
  }
  yield* follow();
}

/**
 * Starts the program. One that is bound to this client is opened with an attachment of the client's: so the guest can be told that it has
 * gone, however far the start is, and nobody else's is meant.
 */
async function open(sessions: WorkspaceSessions, call: Terminal, signal: AbortSignal): Promise<void> {
  const { program, attach } = call.wish;
  const attachmentId =
    program.clientBound && attach.mode === "exclusive" ? attachmentIdOf(crypto.randomUUID()) : undefined;
  const onSend = (): void => {
    call.reserved = attachmentId;
  };
  try {
    const opened = await sessions.open({ ...program, attachmentId }, signal, onSend);
    call.opened = true;
    call.reserved = opened.attachmentId;
  } catch (error) {
    if (hasReason(error, "SESSION_EXISTS")) call.reserved = undefined;
    throw error;
  }
}

/** The client of what was opened has gone before it was attached to. What the guest cannot be told it knows by itself after 60 s. */
async function letGoOpened(
  sessions: WorkspaceSessions,
  sessionId: SessionId,
  attachmentId: AttachmentId,
  clock: Clock,
): Promise<void> {
  using within = new Deadline(clock, reattachWindowMs);
  for (let attempt = 0; ; attempt += 1) {
    try {
      await sessions.detach({ sessionId, attachmentId, clientClosed: true }, within.signal);
      return;
    } catch (error) {
      if (within.signal.aborted || !hasReason(error, "SESSION_DETACHED", "AGENT_UNREACHABLE")) return; // Nobody is left to be told.
      await pause(clock, backoffMs(again, attempt, Math.random()), within.signal).catch(() => undefined);
    }
  }
}

/** Who has seen a terminal before is never given a new one in its place. */
function mayOpen({ fromOffset, expectedBootId, attachmentId }: AttachSessionWish): boolean {
  return fromOffset === 0 && expectedBootId === undefined && attachmentId === undefined;
}
