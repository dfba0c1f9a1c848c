import { workspaceIdOf } from "@holdfast/contract";
import type { ListedSandbox, SandboxNews, SandboxWatchEnd, SandboxWatchWish } from "@holdfast/workspace";
import type { LogSink } from "../log-sink.ts";
import { at, ObjectUnreadable, textOf } from "../objects/json.ts";
import { readListedSandbox } from "../objects/sandbox.ts";
import type { WatchEvent } from "./watch-event.ts";
import { type StretchDeps, watchStretch } from "./watch-stretch.ts";

/** Follows the Sandboxes of workspaces from a version, in readings. What is no workspace's only moves the version on. */
export async function watchSandboxObjects(
  deps: StretchDeps & { readonly log: LogSink },
  wish: SandboxWatchWish,
  signal: AbortSignal,
): Promise<SandboxWatchEnd> {
  const end = await watchStretch(
    deps,
    wish.from,
    { opened: wish.onOpen, heard: (event) => wish.onNews(newsOf(event, deps.log)) },
    signal,
  );
  return {
    why: end.why,
    isFault: end.isFault,
    isExpired: end.isExpired ?? false,
    mustList: end.forget,
    retryAfterMs: end.retryAfterMs,
  };
}

function newsOf(event: Exclude<WatchEvent, { readonly t: "error" }>, log: LogSink): SandboxNews {
  const { version } = event;
  if (event.t === "bookmark") return { t: "bookmark", version };
  const name = textOf(at(event.object, "metadata", "name"));
  if (name === undefined || workspaceIdOf(name) === undefined) return { t: "nothing", version };
  const sandbox = readable(event.object, name, log);
  // One that cannot be read is left out of lists, so it is gone from here too.
  if (event.kind === "DELETED" || sandbox === undefined) return { t: "gone", name, last: sandbox, version };
  return { t: "stands", sandbox, isNew: event.kind === "ADDED", version };
}

function readable(object: unknown, name: string, log: LogSink): ListedSandbox | undefined {
  try {
    return readListedSandbox(object);
  } catch (error) {
    if (!(error instanceof ObjectUnreadable)) throw error;
    log.warn(`the Sandbox ${name} cannot be read and is left out of the watch: ${error.message}`);
    return undefined;
  }
}
