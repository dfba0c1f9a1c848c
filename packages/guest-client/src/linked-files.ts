import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import {
  type FileInfo as FileInfoOnWire,
  FileService,
  type ListResponseSchema,
  type WalkResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { Clock, Deadline } from "@holdfast/async";
import { type GuestLink, LinkProtocolError } from "@holdfast/guest-link";
import type { FileInfo, GuestFiles, ReadEvent, ReadWish, WalkWish, WatchEvent, WriteWish } from "@holdfast/workspace";
import { download, type Received, type StreamPath } from "./file-download.ts";
import { fileInfoOf } from "./file-info.ts";
import { upload } from "./file-upload.ts";
import { guestErrorOf } from "./guest-errors.ts";
import { readEvents } from "./read-events.ts";
import type { StreamQueue } from "./stream-queue.ts";
import { watchEvents } from "./watch-events.ts";

const { stat, makeDirectory, move, remove, read, list, walk, watch } = FileService.method;

/** The files of one guest, over the framed link. */
export class LinkedFiles implements GuestFiles {
  readonly #path: StreamPath;

  constructor(link: GuestLink, clock: Clock) {
    this.#path = { link, clock };
  }

  read(wish: ReadWish, signal: AbortSignal): AsyncIterable<ReadEvent> {
    const { path, offset, lengthBytes } = wish;
    const length = lengthBytes === undefined ? {} : { length: BigInt(lengthBytes) };
    return download(this.#path, read, { path, offset: BigInt(offset), ...length }, signal, (queue) =>
      readEvents(queue, wish),
    );
  }

  write(wish: WriteWish, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<FileInfo> {
    return upload(this.#path, wish, content, signal);
  }

  stat(path: string, within: Deadline): Promise<FileInfo> {
    return fileIn(this.#path.link.call(stat, { path }, { within }));
  }

  list(path: string, signal: AbortSignal): AsyncIterable<readonly FileInfo[]> {
    return download(this.#path, list, { path }, signal, batches);
  }

  walk(wish: WalkWish, signal: AbortSignal): AsyncIterable<readonly FileInfo[]> {
    const request = {
      path: wish.path,
      glob: wish.glob,
      maxDepth: wish.maxDepth ?? 0,
      maxEntries: BigInt(wish.maxEntries ?? 0),
      maxVisited: BigInt(wish.maxVisited),
      hidden: wish.hidden,
    };
    return download(this.#path, walk, request, signal, batches);
  }

  makeDirectory(
    wish: { readonly path: string; readonly makeParents: boolean; readonly mode: number | undefined },
    within: Deadline,
  ): Promise<FileInfo> {
    const { path, makeParents, mode } = wish;
    const request = { path, makeParents, ...(mode === undefined ? {} : { mode }) };
    return fileIn(this.#path.link.call(makeDirectory, request, { within }));
  }

  async remove(wish: { readonly path: string; readonly recursive: boolean }, signal: AbortSignal): Promise<void> {
    let removed = false;
    for await (const _ of download(this.#path, remove, wish, signal, messages)) removed = true;
    if (!removed) throw guestErrorOf(new LinkProtocolError("the removal was called complete without an answer"));
  }

  move(
    wish: { readonly from: string; readonly to: string; readonly replace: boolean },
    within: Deadline,
  ): Promise<FileInfo> {
    return fileIn(this.#path.link.call(move, wish, { within }));
  }

  watch(wish: { readonly path: string; readonly recursive: boolean }, signal: AbortSignal): AsyncIterable<WatchEvent> {
    return download(this.#path, watch, wish, signal, watchEvents);
  }
}

async function fileIn(call: Promise<{ readonly file?: FileInfoOnWire | undefined }>): Promise<FileInfo> {
  try {
    return fileInfoOf((await call).file);
  } catch (error) {
    throw guestErrorOf(error);
  }
}

type FilesQueue = StreamQueue<Received<typeof ListResponseSchema | typeof WalkResponseSchema>>;

async function* batches(queue: FilesQueue): AsyncGenerator<readonly FileInfo[], void, undefined> {
  for await (const { files } of messages(queue)) yield files.map(fileInfoOf);
}

async function* messages<O extends DescMessage>(queue: StreamQueue<Received<O>>): AsyncGenerator<MessageShape<O>> {
  for (let next = await queue.next(); next !== undefined; next = await queue.next()) {
    if (next.t !== "message") throw new LinkProtocolError("bytes came on a stream that carries messages");
    yield next.message;
  }
}
