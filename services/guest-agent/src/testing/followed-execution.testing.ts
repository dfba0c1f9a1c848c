import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type CommandSchema,
  type ExecutionEvent,
  type ExecutionEvent_Exited,
  type ExecutionEvent_Gap,
  type ExecutionEvent_Started,
  ExecutionService,
  type FollowExecutionRequest,
  type LeftoverProcess,
  OutputChannel,
  type StartExecutionRequest,
  StartExecutionResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/execution_pb";
import type { AnsweredError, CallerStream, GuestLink } from "@holdfast/guest-link";
import { soon } from "./agent-process.testing.ts";

type Command = MessageInitShape<typeof CommandSchema>;
type Start = Partial<
  Pick<StartExecutionRequest, "retainOutput" | "onDisconnect" | "leftovers" | "fromOffset" | "expectedBootId">
> & {
  readonly drain?: { readonly seconds: bigint; readonly nanos?: number };
  readonly maxOutputBytes?: bigint;
};
type Follow = Partial<Pick<FollowExecutionRequest, "fromOffset" | "asClient" | "expectedBootId">>;

/** One stream of a command, with everything it brought. Fails the test where output is not one unbroken sequence. */
export class FollowedExecution {
  started: ExecutionEvent_Started | undefined;
  exited: ExecutionEvent_Exited | undefined;
  readonly gaps: ExecutionEvent_Gap[] = [];
  /** How the stream ended; undefined for complete. */
  readonly over: Promise<Error | undefined>;
  stream: CallerStream | undefined;
  /** Called with each piece, instead of keeping it. */
  onData: ((bytes: Buffer) => void) | undefined;
  readonly #over = Promise.withResolvers<Error | undefined>();
  readonly #pieces: { channel: OutputChannel; bytes: Buffer }[] = [];
  readonly #waiting = new Set<() => void>();
  #channel: OutputChannel | undefined;
  #position: number;

  constructor(from = 0) {
    this.over = this.#over.promise;
    this.#position = from;
  }

  get position(): number {
    return this.#position;
  }

  /** All bytes, or those of one channel, as delivered. */
  bytes(channel?: "stdout" | "stderr"): Buffer {
    const wanted =
      channel === undefined ? undefined : channel === "stdout" ? OutputChannel.STDOUT : OutputChannel.STDERR;
    return Buffer.concat(
      this.#pieces.filter((piece) => wanted === undefined || piece.channel === wanted).map(({ bytes }) => bytes),
    );
  }

  get text(): string {
    return this.bytes().toString();
  }

  /** The exit code or signal; throws the stream's answer in its place. */
  async end(): Promise<number | string> {
    const error = await this.over;
    if (error) throw error;
    if (this.exited === undefined) throw new Error("complete without exited");
    return this.exited.outcome.value ?? Number.NaN;
  }

  /** Resolves once it holds, looked at after each event. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  readonly listener = {
    message: (payload: Buffer): void => {
      this.#take(fromBinary(StartExecutionResponseSchema, payload).event?.event);
      this.#wake();
    },
    data: (bytes: Buffer): void => {
      if (this.#channel === undefined) throw new Error("bytes before a segment");
      this.#position += bytes.length;
      if (this.onData) this.onData(bytes);
      else this.#pieces.push({ channel: this.#channel, bytes });
      this.#wake();
    },
    over: (error: Error | undefined): void => {
      this.#over.resolve(error);
      this.#wake();
    },
  };

  #take(event: ExecutionEvent["event"] | undefined): void {
    switch (event?.case) {
      case "started":
        if (this.started) throw new Error("started twice");
        this.started = event.value;
        return;
      case "segment":
        this.#at(event.value.offset);
        this.#channel = event.value.channel;
        return;
      case "gap":
        this.#at(event.value.from);
        this.gaps.push(event.value);
        this.#position = Number(event.value.to);
        return;
      case "exited":
        this.#at(event.value.outputBytes);
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

/** Starts a command and follows it. */
export async function start(
  link: GuestLink,
  executionId: string,
  command: Command,
  more: Start = {},
): Promise<FollowedExecution> {
  const followed = new FollowedExecution(Number(more.fromOffset ?? 0));
  const request = { executionId, command, ...more };
  followed.stream = await link.open(ExecutionService.method.startExecution, request, followed.listener, {
    within: soon(),
  });
  return followed;
}

/** Starts a shell script and follows it. */
export function script(
  link: GuestLink,
  executionId: string,
  text: string,
  more: Start = {},
): Promise<FollowedExecution> {
  return start(link, executionId, { command: "sh", args: ["-c", text] }, more);
}

/** Follows a command that exists. */
export async function attach(link: GuestLink, executionId: string, more: Follow = {}): Promise<FollowedExecution> {
  const followed = new FollowedExecution(Number(more.fromOffset ?? 0));
  const request = { executionId, ...more };
  followed.stream = await link.open(ExecutionService.method.followExecution, request, followed.listener, {
    within: soon(),
  });
  return followed;
}

export function cancel(link: GuestLink, executionId: string, graceMs?: number) {
  const grace = graceMs === undefined ? {} : { grace: { seconds: 0n, nanos: graceMs * 1_000_000 } };
  return link.call(ExecutionService.method.cancelExecution, { executionId, ...grace }, { within: soon(15_000) });
}

/** The answer that a stream ends with. */
export async function refusalOf(followed: Promise<FollowedExecution>): Promise<AnsweredError> {
  const error = await (await followed).over;
  if (error === undefined) throw new Error("it was not refused");
  return error as AnsweredError;
}

export const namesOf = (leftovers: readonly LeftoverProcess[]): string[] => leftovers.map(({ name }) => name);
