import type { ServerResponse } from "node:http";
import type { ListPage } from "../registry/list-page.ts";
import { drained } from "./drained.ts";
import { type ListBody, wholeText } from "./list-body.ts";
import { type Reply, textOfJsonReply } from "./reply.ts";

/** A list that is too large to be made whole. It is read from the store as its caller reads it. */
export interface ListAnswer {
  readonly page: ListPage;
  readonly body: ListBody;
}

/** A small list is a reply like any other. */
export function listAnswer(page: ListPage, body: ListBody): Reply | ListAnswer {
  return page.small === undefined ? { page, body } : textOfJsonReply(200, wholeText(body, page.small));
}

/** As long as the real server gives a request that is no watch. */
const listLimitMs = 60_000;

/**
 * Writes a list object by object, as fast as the caller takes it, as it stood at its version whatever is written
 * meanwhile. What cannot be finished (the caller's pace, a compaction by hand, the server's end) is cut off, so that
 * half a list is never taken for one. Throws 410, before anything is written, where the version is gone already.
 */
export async function streamList(
  { page, body }: ListAnswer,
  response: ServerResponse,
  limitMs = listLimitMs,
): Promise<void> {
  const unpin = page.pin();
  const over = new AbortController();
  const end = (): void => over.abort();
  const timer = setTimeout(end, limitMs);
  response.once("close", end);
  if (response.destroyed) end(); // the caller left before it began
  try {
    response.writeHead(200, { "content-type": "application/json", "cache-control": "no-cache, private" });
    let lead = body.head;
    for (const item of page.bodies()) {
      if (!response.write(lead + body.item(item))) await drained(response, over.signal);
      if (over.signal.aborted) break;
      lead = ",";
    }
    if (over.signal.aborted) response.destroy();
    else response.end(lead === "," ? body.tail : body.head + body.tail);
  } finally {
    clearTimeout(timer);
    unpin();
  }
}
