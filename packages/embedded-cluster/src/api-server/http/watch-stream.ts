import type { ServerResponse } from "node:http";
import type { OpenWatch } from "../../faults/watch-faults.ts";
import type { CursorEvent, WatchCursor } from "../registry/watch-cursor.ts";
import { apiVersionOf, type ResourceType } from "../resource-types.ts";
import { drained } from "./drained.ts";
import { refusalOf } from "./reply.ts";

const batch = 32;

/** A watch that was accepted and is yet to be streamed. */
export interface WatchAnswer {
  readonly type: ResourceType;
  readonly cursor: WatchCursor;
  readonly timeoutMs: number;
  readonly bookmarks: boolean;
  /** Whether a bookmark marks the end of what was there at the start. */
  readonly marksListEnd: boolean;
  /** Turns an object's JSON text into what the caller asked to see. */
  readonly present: (body: string) => string;
}

export interface WatchStreamOptions {
  readonly response: ServerResponse;
  /** Calls back when it is time for a bookmark. Returns the way to stop. */
  readonly onBookmarkTime: (listener: () => void) => () => void;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
  /** What fault rules make of this watch. Closed with it. */
  readonly faults?: OpenWatch;
}

/**
 * Streams a watch until its timeout, the caller's leaving, or the server's stop. Nothing is queued for a slow caller:
 * the cursor waits for the socket, and when the log has been compacted past it the stream ends with 410.
 */
export async function streamWatch(watch: WatchAnswer, options: WatchStreamOptions): Promise<void> {
  const { cursor, type } = watch;
  const { response, faults } = options;
  const over = new AbortController();
  const end = (): void => over.abort();
  const cut = (): void => {
    response.destroy();
    end();
  };
  const timer = setTimeout(end, watch.timeoutMs);
  options.stopping.addEventListener("abort", end, { once: true });
  faults?.cut.addEventListener("abort", cut, { once: true });
  response.once("close", end);
  if (response.destroyed || options.stopping.aborted) end(); // The caller left before the watch began.
  const isHeldUp = (): boolean => faults?.isHeldUp === true;
  const stopBookmarks = options.onBookmarkTime(() => {
    const mayWrite = watch.bookmarks && !response.writableNeedDrain && !cursor.isListing && !isHeldUp();
    if (mayWrite) response.write(bookmarkLine(type, cursor.resumeVersion));
  });

  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-cache, private" });
  response.flushHeaders();
  let marksListEnd = watch.marksListEnd;
  try {
    while (!over.signal.aborted) {
      for (const event of cursor.read(batch)) {
        await faults?.ready(over.signal);
        if (over.signal.aborted) break;
        if (!response.write(eventLine(event, watch.present))) await drained(response, over.signal);
        if (over.signal.aborted) break;
      }
      if (marksListEnd && !cursor.isListing && !over.signal.aborted) {
        marksListEnd = false;
        response.write(bookmarkLine(type, cursor.listedVersion, { "k8s.io/initial-events-end": "true" }));
      }
      await cursor.changed(over.signal);
    }
    if (watch.bookmarks && !response.writableNeedDrain && !response.destroyed && !isHeldUp()) {
      response.write(bookmarkLine(type, cursor.resumeVersion));
    }
  } catch (error) {
    response.write(`${JSON.stringify({ type: "ERROR", object: refusalOf(error).status })}\n`);
  } finally {
    clearTimeout(timer);
    stopBookmarks();
    options.stopping.removeEventListener("abort", end);
    cursor.close();
    faults?.close();
    // A caller that does not read would keep an ended stream open for ever.
    if (response.writableNeedDrain) response.destroy();
    else response.end();
  }
}

function eventLine(event: CursorEvent, present: (body: string) => string): string {
  return `{"type":"${event.type}","object":${present(event.body)}}\n`;
}

function bookmarkLine(type: ResourceType, rv: number, annotations?: Readonly<Record<string, string>>): string {
  const object = {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { resourceVersion: String(rv), ...(annotations === undefined ? {} : { annotations }) },
  };
  return `${JSON.stringify({ type: "BOOKMARK", object })}\n`;
}
