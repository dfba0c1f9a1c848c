import { ChangeKind, type WatchResponseSchema } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { LinkProtocolError } from "@holdfast/guest-link";
import type { WatchEvent } from "@holdfast/workspace";
import type { Received } from "./file-download.ts";
import type { StreamQueue } from "./stream-queue.ts";

const kinds: Readonly<Partial<Record<ChangeKind, Extract<WatchEvent, { t: "change" }>["kind"]>>> = {
  [ChangeKind.CREATED]: "created",
  [ChangeKind.MODIFIED]: "modified",
  [ChangeKind.REMOVED]: "removed",
};

/** A watch's events. It ends only with an error: a watch has no end of its own. */
export async function* watchEvents(
  queue: StreamQueue<Received<typeof WatchResponseSchema>>,
): AsyncGenerator<WatchEvent, void, undefined> {
  for (let next = await queue.next(); next !== undefined; next = await queue.next()) {
    if (next.t !== "message") throw new LinkProtocolError("bytes came on a stream that carries messages");
    const { watching, changes, overflow } = next.message;
    if (watching !== undefined) yield { t: "watching", directories: watching };
    for (const { kind, path, rawName } of changes) {
      const known = kinds[kind];
      // A kind of change that this release does not know is still a change.
      yield { t: "change", kind: known ?? "modified", path, rawName: rawName.length === 0 ? undefined : rawName };
    }
    if (overflow !== "") yield { t: "overflow", cause: overflow };
  }
  throw new LinkProtocolError("the watch was called complete");
}
