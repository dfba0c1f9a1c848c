import type { HolderEpoch } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { FileInfo, WriteWish } from "../ports/files.ts";
import { isHandleOver } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { askGuest } from "./guest-call.ts";

/**
 * Writes one file. It moves to another guest only while nothing of the content was pulled: what is pulled is gone. What the content
 * itself throws is what the caller hears; the old file stands.
 */
export async function writeFile(
  ws: Handle,
  wish: WriteWish,
  epoch: HolderEpoch | undefined,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<FileInfo> {
  const content = new Content(source);
  try {
    return await askGuest(
      ws,
      {
        feature: "files",
        claim: { changes: true, epoch },
        ask: (guest) => guest.files.write(wish, content, signal),
        isSpent: () => content.state !== "untouched",
        lost: (cause) => outcomeUnknown(ws, wish, content, cause),
      },
      signal,
    );
  } catch (error) {
    if (content.failure !== undefined) throw content.failure.thrown;
    // On another handle the call would begin with what is left of the content.
    throw content.state === "untouched" || !isHandleOver(error) ? error : final(error);
  }
}

/** The content on its way to the guest, once. */
class Content implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterable<Uint8Array>;
  /** `whole`: its end was pulled, so that the guest may have put it in place. */
  state: "untouched" | "pulled" | "whole" = "untouched";
  failure: { readonly thrown: unknown } | undefined;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    if (this.state !== "untouched") throw new Error("the content was pulled before");
    this.state = "pulled";
    try {
      yield* this.#source;
      this.state = "whole";
    } catch (thrown) {
      this.failure = { thrown };
      throw thrown;
    }
  }
}

/** The refusal of a handle that is over, for a call that cannot be made on another one. */
function final(error: HoldfastError): HoldfastError {
  const { handle: _, ...metadata } = error.metadata;
  return new HoldfastError(error.reason, { message: error.message, metadata, cause: error });
}

/** Something was sent and no answer came. The guest puts a content in place by one rename, once it has all of it. */
function outcomeUnknown(ws: Handle, { path }: WriteWish, content: Content, cause: Error): HoldfastError {
  const stands =
    content.state === "whole"
      ? "Either the old content stands whole, or the new one: never a mixture. Look at the file (its etag) before writing it again"
      : "The content had not been sent whole, so what stood there stands as it was";
  return new HoldfastError("FILE_OUTCOME_UNKNOWN", {
    message: `The link to the guest of workspace ${ws.id} broke while ${path} was being written (${cause.message}). ${stands}.`,
    metadata: { path, content_sent: content.state === "whole" ? "whole" : "in_part" },
    cause,
  });
}
