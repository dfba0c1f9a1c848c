import type { Clock } from "@holdfast/async";
import { hasReason } from "@holdfast/errors";
import { LeaveRunning } from "../ports/executions.ts";
import type { AttachSessionWish, OpenSessionWish, SessionEvent } from "../ports/sessions.ts";
import { isClientsFault } from "./feeding.ts";
import type { WorkspaceSessions } from "./sessions.ts";
import { type TerminalInput, Typing } from "./typing.ts";

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
  const output = attached(sessions, call, over.signal);
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
  signal: AbortSignal,
): AsyncGenerator<SessionEvent, void> {
  const { verb, program, attach } = call.wish;
  // Only what this stream has opened may be bound to its client.
  const follow = (): AsyncGenerator<SessionEvent, void> =>
    sessions.attach(attach, call.opened && program.clientBound ? "with_client" : "kept", signal);
  if (verb === "open") {
    if (!call.opened) await sessions.open(program, signal);
    call.opened = true;
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
      await sessions.open(program, signal);
      call.opened = true;
    } catch (error) {
      if (!hasReason(error, "SESSION_EXISTS")) throw error; // Somebody else was first.
    }
  }
  yield* follow();
}

/** Who has seen a terminal before is never given a new one in its place. */
function mayOpen({ fromOffset, expectedBootId, attachmentId }: AttachSessionWish): boolean {
  return fromOffset === 0 && expectedBootId === undefined && attachmentId === undefined;
}
