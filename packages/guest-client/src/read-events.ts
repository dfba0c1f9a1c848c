import type { ReadResponseSchema } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { fileChunkMaxBytes } from "@holdfast/contract";
import { LinkProtocolError } from "@holdfast/guest-link";
import type { ReadEvent, ReadWish } from "@holdfast/workspace";
import type { Received } from "./file-download.ts";
import { fileInfoOf } from "./file-info.ts";
import type { StreamQueue } from "./stream-queue.ts";

type ReadQueue = StreamQueue<Received<typeof ReadResponseSchema>>;

/** A read's events, checked: ends well only when exactly the bytes that were wished and that the file has were delivered. */
export async function* readEvents(queue: ReadQueue, wish: ReadWish): AsyncGenerator<ReadEvent, void, undefined> {
  const first = await queue.next();
  if (first?.t !== "message") throw new LinkProtocolError("a read that does not begin with the file");
  const file = fileInfoOf(first.message.file);
  yield { t: "opened", file };
  const end = Math.min(file.sizeBytes, wish.offset + (wish.lengthBytes ?? Number.POSITIVE_INFINITY));
  let offset = wish.offset;
  for (let next = await queue.next(); next !== undefined; next = await queue.next()) {
    if (next.t !== "data") throw new LinkProtocolError("a message among a file's bytes");
    const data = joined(next.data, queue);
    if (offset + data.length > end) throw new LinkProtocolError(`bytes past ${end}, where the read ends`);
    yield { t: "chunk", offset, data };
    offset += data.length;
  }
  if (offset !== end) throw new LinkProtocolError(`the read was called complete at ${offset} of ${end}`);
}

/** Puts pieces that wait together, up to the size of a chunk: where the link cut them means nothing. */
function joined(first: Buffer, queue: ReadQueue): Buffer {
  const parts = [first];
  let bytes = first.length;
  for (;;) {
    const next = queue.peek();
    if (next?.t !== "data" || bytes + next.data.length > fileChunkMaxBytes) break;
    parts.push(next.data);
    bytes += next.data.length;
    queue.shift();
  }
  return parts.length === 1 ? first : Buffer.concat(parts, bytes);
}
