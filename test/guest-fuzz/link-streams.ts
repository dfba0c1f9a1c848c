import { type DescMessage, type DescMethodStreaming, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ExecutionService,
  type StartExecutionRequestSchema,
  StartExecutionResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import type { GuestLink } from "@holdfast/guest-link";

export interface CommandOutcome {
  readonly output: Buffer;
  /** `code 0`, `signal SIGKILL`. */
  readonly end: string;
  readonly startedAtMs: number;
}

const streamWithinMs = 60_000;

/** Runs a command to its end, with all its output. Rejects with what the stream ended with instead. */
export async function runCommand(
  link: GuestLink,
  request: MessageInitShape<typeof StartExecutionRequestSchema>,
  epoch: bigint,
  onData?: (bytes: Buffer) => void,
): Promise<CommandOutcome> {
  let end = "no exit";
  let startedAtMs = 0;
  const { data } = await drive(
    link,
    ExecutionService.method.startExecution,
    request,
    epoch,
    undefined,
    (payload) => {
      const { event } = fromBinary(StartExecutionResponseSchema, payload).event ?? {};
      if (event?.case === "started") startedAtMs = performance.now();
      if (event?.case === "exited") end = `${event.value.outcome.case} ${event.value.outcome.value}`;
    },
    onData,
  );
  return { output: data, end, startedAtMs };
}

/** Opens a stream, sends these bytes and EOF, and reads it to its end. Undefined: it takes none. */
export function sendStream<I extends DescMessage, O extends DescMessage>(
  link: GuestLink,
  method: DescMethodStreaming<I, O>,
  request: MessageInitShape<I>,
  bytes: Buffer | undefined,
  epoch: bigint,
): Promise<{ readonly data: Buffer }> {
  return drive(link, method, request, epoch, bytes, () => undefined);
}

async function drive<I extends DescMessage, O extends DescMessage>(
  link: GuestLink,
  method: DescMethodStreaming<I, O>,
  request: MessageInitShape<I>,
  epoch: bigint,
  bytes: Buffer | undefined,
  message: (payload: Buffer) => void,
  onData?: (bytes: Buffer) => void,
): Promise<{ readonly data: Buffer }> {
  const parts: Buffer[] = [];
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  over.catch(() => undefined); // Awaited below, unless the opening fails first.
  const listener = {
    message,
    data: onData ?? ((part: Buffer) => void parts.push(Buffer.from(part))),
    over: (error: Error | undefined) => (error ? reject(error) : resolve()),
  };
  using within = new Deadline(systemClock, streamWithinMs);
  const stream = await link.open(method, request, listener, { within, epoch });
  within.signal.addEventListener("abort", () => stream.destroy(new Error("took too long")));
  if (bytes !== undefined) {
    stream.sendData(bytes);
    stream.sendEof();
  }
  await over;
  return { data: Buffer.concat(parts) };
}
