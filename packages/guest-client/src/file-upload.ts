import { fromBinary } from "@bufbuild/protobuf";
import { FileService, type WriteResponse, WriteResponseSchema } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { Deadline } from "@holdfast/async";
import { guestDialTimeoutMs } from "@holdfast/contract";
import { LinkProtocolError } from "@holdfast/guest-link";
import type { FileInfo, WriteWish } from "@holdfast/workspace";
import type { StreamPath } from "./file-download.ts";
import { fileInfoOf } from "./file-info.ts";
import { guestErrorOf } from "./guest-errors.ts";

const openTimeoutMs = 2 * guestDialTimeoutMs;

/** Sends a file's content as fast as the guest takes it, and waits for the guest's word that it is durable under its name. */
export async function upload(
  { link, clock }: StreamPath,
  wish: WriteWish,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<FileInfo> {
  const answer = Promise.withResolvers<WriteResponse>();
  const early = new EarlyEnd(answer.promise);
  let response: WriteResponse | undefined;
  const listener = {
    message: (payload: Buffer) => {
      response = fromBinary(WriteResponseSchema, payload);
    },
    data: () => answer.reject(new LinkProtocolError("bytes came on a stream that carries them upwards")),
    over: (error: Error | undefined) => {
      if (error) answer.reject(error);
      else if (response) answer.resolve(response);
      else answer.reject(new LinkProtocolError("the write was called complete without an answer"));
    },
  };
  const onAbort = (): void => answer.reject(signal.reason);
  const parts = content[Symbol.asyncIterator]();
  let done = false;
  try {
    signal.throwIfAborted();
    signal.addEventListener("abort", onAbort, { once: true });
    using within = new Deadline(clock, openTimeoutMs, signal);
    const stream = await link.open(FileService.method.write, requestOf(wish), listener, { within });
    try {
      // Each wait also ends with the guest's answer: a full disk is told at once, whatever the content still does.
      for (;;) {
        const part = await early.or(parts.next());
        if (part.done) break;
        if (!stream.sendData(part.value)) await early.or(stream.drained());
      }
      done = true;
      stream.sendEof();
      return fileInfoOf((await answer.promise).file);
    } finally {
      stream.end({ clientClosed: true }); // Without EOF before it, nothing is put in place.
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : guestErrorOf(error);
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Not awaited: a content that hangs must not hold up the answer.
    if (!done) void parts.return?.().catch(() => undefined);
  }
}

/**
 * Ends the wait that is under way when the guest's answer comes before all was sent. One reaction for all waits: a promise keeps each
 * that is added to it until it settles, and with it what it was raced against, which here would be the whole content.
 */
class EarlyEnd {
  #error: unknown;
  #reject: ((error: unknown) => void) | undefined;

  constructor(answer: Promise<unknown>) {
    const end = (error: unknown): void => {
      this.#error = error;
      this.#reject?.(error);
    };
    answer.then(() => end(new LinkProtocolError("the write was called complete before all bytes were sent")), end);
  }

  or<Value>(step: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      step.then(resolve, reject);
      if (this.#error !== undefined) reject(this.#error);
    });
  }
}

function requestOf(wish: WriteWish) {
  return {
    path: wish.path,
    ...(wish.mode === undefined ? {} : { mode: wish.mode }),
    ifAbsent: wish.ifAbsent,
    ifUnchanged: wish.ifUnchanged ?? "",
    makeParents: wish.makeParents,
    ...(wish.sizeBytes === undefined ? {} : { size: BigInt(wish.sizeBytes) }),
  };
}
