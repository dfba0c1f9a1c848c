import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AttachMode,
  type AttachSessionRequestSchema,
  type AttachSessionResponse_Attached,
  type AttachSessionResponse_Exited,
  type AttachSessionResponse_Gap,
  AttachSessionResponseSchema,
  type OpenSessionRequestSchema,
  type Session,
  SessionKind,
  SessionService,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import type { CallerStream, GuestLink } from "@holdfast/guest-link";
import { soon } from "./agent-process.testing.ts";

const { openSession, attachSession, writeSession } = SessionService.method;

/** One attachment, with everything it brought. Fails the test where output is not one unbroken sequence. */
export class FollowedSession {
  attached: AttachSessionResponse_Attached | undefined;
  exited: AttachSessionResponse_Exited | undefined;
  readonly gaps: AttachSessionResponse_Gap[] = [];
  /** How the stream ended; undefined for complete. */
  readonly over: Promise<Error | undefined>;
  stream: CallerStream | undefined;
  /** Called with each piece, instead of keeping it. */
  onData: ((bytes: Buffer) => void) | undefined;
  readonly #over = Promise.withResolvers<Error | undefined>();
  readonly #pieces: Buffer[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #link: GuestLink;
  readonly #sessionId: string;
  #position: number;
  #nextSequence = 0;

  constructor(link: GuestLink, sessionId: string, from: number) {
    this.over = this.#over.promise;
    this.#link = link;
    this.#sessionId = sessionId;
    this.#position = from;
  }

  get position(): number {
    return this.#position;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  get text(): string {
    return this.bytes.toString();
  }

  get id(): string {
    return this.attached?.attachmentId ?? "";
  }

  /** Types this, and waits until it is in the terminal. */
  async type(data: string | Uint8Array, epoch?: bigint): Promise<void> {
    const sequence = BigInt(this.#nextSequence++);
    await write(this.#link, this.#sessionId, this.id, sequence, data, epoch);
  }

  /** The exit code or signal; throws the stream's answer in its place. */
  async end(): Promise<number | string> {
    const error = await this.over;
    if (error) throw error;
    if (this.exited?.exit === undefined) throw new Error("complete without exited");
    return this.exited.exit.outcome.value ?? Number.NaN;
  }

  /** Resolves once it holds, looked at after each event. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  readonly listener = {
    message: (payload: Buffer): void => {
      this.#take(fromBinary(AttachSessionResponseSchema, payload).event);
      this.#wake();
    },
    data: (bytes: Buffer): void => {
      if (!this.attached) throw new Error("bytes before attached");
      this.#position += bytes.length;
      if (this.onData) this.onData(bytes);
      else this.#pieces.push(Buffer.from(bytes));
      this.#wake();
    },
    over: (error: Error | undefined): void => {
      this.#over.resolve(error);
      this.#wake();
    },
  };

  #take(event: ReturnType<typeof eventOf>): void {
    switch (event.case) {
      case "attached":
        if (this.attached) throw new Error("attached twice");
        this.#at(event.value.offset);
        this.attached = event.value;
        this.#nextSequence = Number(event.value.nextInputSequence);
        return;
      case "gap":
        this.#at(event.value.from);
        this.gaps.push(event.value);
        this.#position = Number(event.value.to);
        return;
      case "exited":
        this.#at(event.value.nextOffset);
        this.exited = event.value;
        return;
      default:
        throw new Error("an event without content");
    }
  }

  #at(offset: bigint): void {
    if (Number(offset) !== this.#position) throw new Error(`at ${offset}, expected ${this.#position}`);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

const eventOf = (payload: Buffer) => fromBinary(AttachSessionResponseSchema, payload).event;

type Open = MessageInitShape<typeof OpenSessionRequestSchema>;
type Attach = MessageInitShape<typeof AttachSessionRequestSchema>;

/** Opens a terminal. */
export async function openTerminal(
  link: GuestLink,
  sessionId: string,
  more: Open = {},
  epoch?: bigint,
): Promise<Session> {
  const request = { sessionId, kind: SessionKind.TERMINAL, ...more };
  const { session } = await link.call(openSession, request, {
    within: soon(),
    ...(epoch === undefined ? {} : { epoch }),
  });
  if (session === undefined) throw new Error("no session");
  return session;
}

/** Opens a terminal that runs a script. */
export const openScript = (link: GuestLink, sessionId: string, text: string, more: Open = {}): Promise<Session> =>
  openTerminal(link, sessionId, { command: "sh", args: ["-c", text], ...more });

/** Attaches, exclusively unless told otherwise, and waits until it stands or is refused. */
export async function attachTo(
  link: GuestLink,
  sessionId: string,
  more: Attach = {},
  epoch?: bigint,
): Promise<FollowedSession> {
  const followed = new FollowedSession(link, sessionId, Number(more.fromOffset ?? 0));
  const request = { sessionId, mode: AttachMode.EXCLUSIVE, ...more };
  const options = { within: soon(), ...(epoch === undefined ? {} : { epoch }) };
  followed.stream = await link.open(attachSession, request, followed.listener, options);
  const refused = await Promise.race([followed.until(() => followed.attached !== undefined), followed.over]);
  if (refused) throw refused;
  return followed;
}

export function write(
  link: GuestLink,
  sessionId: string,
  attachmentId: string,
  sequence: bigint,
  data: string | Uint8Array,
  epoch?: bigint,
) {
  const request = { sessionId, attachmentId, sequence, data: typeof data === "string" ? Buffer.from(data) : data };
  return link.call(writeSession, request, { within: soon(30_000), ...(epoch === undefined ? {} : { epoch }) });
}
