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
  answer.promise.catch(() => undefined); // It may come while the content is waited for, and is awaited below.
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
        const part = await Promise.race([parts.next(), answer.promise.then(early)]);
        if (part.done) break;
        if (!stream.sendData(part.value)) await Promise.race([stream.drained(), answer.promise.then(early)]);
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

function early(): never {
  throw new LinkProtocolError("the write was called complete before all bytes were sent");
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
