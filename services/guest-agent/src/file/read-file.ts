import { constants, read as readWithCallback } from "node:fs";
import { promisify } from "node:util";
import { type ReadRequest, ReadResponseSchema } from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { AgentStream } from "@holdfast/guest-link";
import { refused } from "./file-errors.ts";
import { infoOf } from "./file-info.ts";
import { assertRegular } from "./regular-file.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

const read = promisify(readWithCallback);
/** Large enough that a read costs little beside its bytes; two of them are all that a stream holds. */
const blockBytes = 256 * 1024;

/** Sends a file, or a range of it, as it was when it was opened. A file that has become shorter fails the read (G28). */
export async function readFile(tree: WorkspaceTree, request: ReadRequest, stream: AgentStream): Promise<void> {
  const { path } = request;
  using place = await tree.require(path, { follow: true });
  assertRegular(place.entry.stat, path); // Before it is opened: opening a FIFO or a device may wait, or do something.
  using file = await place.entry.pinned.reopen(constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  const stat = await file.stat();
  if (request.offset > stat.size) {
    throw refused("OFFSET_OUT_OF_RANGE", path, `it has ${stat.size} bytes; offset ${request.offset} is past them`, {
      offset: String(request.offset),
      size: String(stat.size),
    });
  }
  const available = stat.size - request.offset;
  const length = request.length === undefined || request.length > available ? available : request.length;
  const end = Number(request.offset + length);
  const told = { path: place.path, rawName: undefined };
  stream.sendMessage(ReadResponseSchema, { file: await infoOf(told, stat, undefined) });
  const { signal } = stream.context;
  const size = Math.min(blockBytes, Number(length));
  let filling: Buffer = Buffer.allocUnsafeSlow(size);
  let sent: { readonly block: Buffer; readonly filledSocket: boolean } | undefined;
  for (let at = Number(request.offset); at < end; ) {
    signal.throwIfAborted();
    const { bytesRead } = await read(file.fd, filling, 0, Math.min(filling.length, end - at), at);
    if (bytesRead === 0) {
      throw refused("FILE_CHANGED", path, `it became shorter while it was read: its bytes from ${at} are gone`, {
        offset: String(at),
      });
    }
    at += bytesRead;
    await stream.drained();
    // A block is filled again only when it has left. A socket that it filled, and that has drained since, proves that.
    const free = sent?.filledSocket ? sent.block : undefined;
    sent = { block: filling, filledSocket: !stream.sendData(filling.subarray(0, bytesRead)) };
    filling = free ?? Buffer.allocUnsafeSlow(size);
  }
}
