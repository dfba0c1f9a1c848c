import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { CursorEvent, WatchCursor } from "../registry/watch-cursor.ts";
import { apiVersionOf, type ResourceType } from "../resource-types.ts";
import { refusalOf } from "./reply.ts";

const batch = 32;

export interface WatchStreamOptions {
  readonly type: ResourceType;
  readonly cursor: WatchCursor;
  readonly response: ServerResponse;
  readonly timeoutMs: number;
  readonly bookmarks: boolean;
  /** Turns an object's JSON text into what the caller asked to see. */
  readonly present: (body: string) => string;
  /** Calls back when it is time for a bookmark. Returns the way to stop. */
  readonly onBookmarkTime: (listener: () => void) => () => void;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

/**
 * Streams a watch until its timeout, the caller's leaving, or the server's stop. Nothing is queued for a slow caller:
 * the cursor waits for the socket, and when the log has been compacted past it the stream ends with 410.
 */
export async function streamWatch(options: WatchStreamOptions): Promise<void> {
  const { cursor, response, type } = options;
  const over = new AbortController();
  const end = (): void => over.abort();
  const timer = setTimeout(end, options.timeoutMs);
  options.stopping.addEventListener("abort", end, { once: true });
  response.once("close", end);
  if (response.destroyed || options.stopping.aborted) end(); // The caller left before the watch began.
  const stopBookmarks = options.onBookmarkTime(() => {
    if (options.bookmarks && !response.writableNeedDrain) response.write(bookmarkLine(type, cursor.resumeVersion));
  });

  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-cache, private" });
  response.flushHeaders();
  try {
    while (!over.signal.aborted) {
      for (const event of cursor.read(batch)) {
        if (!response.write(eventLine(event, options.present))) await drained(response, over.signal);
        if (over.signal.aborted) break;
      }
      await cursor.changed(over.signal);
    }
    if (options.bookmarks && !response.writableNeedDrain && !response.destroyed) {
      response.write(bookmarkLine(type, cursor.resumeVersion));
    }
  } catch (error) {
    response.write(`${JSON.stringify({ type: "ERROR", object: refusalOf(error).status })}\n`);
  } finally {
    clearTimeout(timer);
    stopBookmarks();
    options.stopping.removeEventListener("abort", end);
    cursor.close();
    // A caller that does not read would keep an ended stream open for ever.
    if (response.writableNeedDrain) response.destroy();
    else response.end();
  }
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  try {
    await once(response, "drain", { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function eventLine(event: CursorEvent, present: (body: string) => string): string {
  return `{"type":"${event.type}","object":${present(event.body)}}\n`;
}

function bookmarkLine(type: ResourceType, rv: number): string {
  const object = {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { resourceVersion: String(rv), creationTimestamp: null },
  };
  return `${JSON.stringify({ type: "BOOKMARK", object })}\n`;
}
