import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { ApiStatusError } from "../api-status-error.ts";
import { isObject, objectIn, stringIn } from "../json.ts";
import type { WatchEvent } from "../resource-api.ts";
import type { ApiConnection } from "./api-connection.ts";
import { objectOf, readAnswer, statusOf } from "./read-answer.ts";

/** Between a stream that brought nothing and the next: a server that ends streams at once is not asked in a tight loop. */
const emptyStreamPauseMs = 1_000;

/**
 * Yields every change after `resourceVersion` over as many streams as it takes: one that ended (its time was up, the
 * connection was cut) is taken up where it stood. Throws where the server refuses (410 among others) or cannot be reached.
 */
export async function* resumedWatch(
  connection: ApiConnection,
  path: string,
  resourceVersion: string,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent> {
  let reached = resourceVersion;
  while (!signal.aborted) {
    const before = reached;
    const query = { watch: "true", allowWatchBookmarks: "true", resourceVersion: reached };
    const answer = await connection.open({ method: "GET", path, query, signal }).catch((error: unknown) => {
      if (signal.aborted) return undefined;
      throw error;
    });
    if (answer === undefined) return;
    if (answer.statusCode !== 200) await readAnswer(answer); // throws the refusal
    for await (const event of eventsOf(answer)) {
      reached = event.object.metadata.resourceVersion ?? reached;
      yield event;
      if (signal.aborted) return;
    }
    if (reached === before) await delay(emptyStreamPauseMs, undefined, { signal }).catch(() => undefined); // aborted: the loop ends
  }
}

/** The events of one stream, until it ends in whatever way. A line that was cut off is not an event: it comes again. */
async function* eventsOf(answer: IncomingMessage): AsyncGenerator<WatchEvent> {
  answer.setEncoding("utf8");
  let rest = "";
  try {
    for await (const part of answer) {
      const lines = (rest + part).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.trim() !== "") yield eventOf(line);
    }
  } catch (error) {
    if (!answer.errored) throw error;
    // The connection was cut or the caller has left: the stream has ended.
  } finally {
    answer.destroy();
  }
}

function eventOf(line: string): WatchEvent {
  const event: unknown = JSON.parse(line);
  const type = stringIn(event, "type");
  const object = isObject(event) ? event.object : undefined;
  switch (type) {
    case "ERROR":
      throw new ApiStatusError(statusOf(object, 500, line));
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object: objectOf(object) };
    case "BOOKMARK":
      return { type, object: objectOf(nameless(object)) };
    default:
      throw new Error(`The API server sent an event of an unknown type: ${line.slice(0, 300)}`);
  }
}

/** A bookmark is an object of which only the version is told. */
function nameless(object: unknown): unknown {
  return { ...(isObject(object) ? object : {}), metadata: { ...objectIn(object, "metadata"), name: "" } };
}
