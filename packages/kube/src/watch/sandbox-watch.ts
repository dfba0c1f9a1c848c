import { workspaceIdOf } from "@holdfast/contract";
import type { SandboxNews, SandboxReading, SandboxWatchEnd, SandboxWatchWish } from "@holdfast/workspace";
import type { LogSink } from "../log-sink.ts";
import type { DiskKind } from "../objects/disk.ts";
import { at, ObjectUnreadable, textOf } from "../objects/json.ts";
import { readSandboxObject } from "../objects/sandbox.ts";
import type { WatchEvent } from "./watch-event.ts";
import { type StretchDeps, watchStretch } from "./watch-stretch.ts";

/** Follows the Sandboxes of workspaces from a version, in readings. What is no workspace's only moves the version on. */
export async function watchSandboxObjects(
  deps: StretchDeps & { readonly disk: DiskKind; readonly log: LogSink },
  wish: SandboxWatchWish,
  signal: AbortSignal,
): Promise<SandboxWatchEnd> {
  const end = await watchStretch(
    deps,
    wish.from,
    { opened: wish.onOpen, heard: (event) => wish.onNews(newsOf(event, deps.disk, deps.log)) },
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

function newsOf(event: Exclude<WatchEvent, { readonly t: "error" }>, disk: DiskKind, log: LogSink): SandboxNews {
  const { version } = event;
  if (event.t === "bookmark") return { t: "bookmark", version };
  const name = textOf(at(event.object, "metadata", "name"));
  if (name === undefined || workspaceIdOf(name) === undefined) return { t: "nothing", version };
  const sandbox = readable(event.object, name, disk, log);
  // One that cannot be read is left out of lists, so it is gone from here too.
  if (event.kind === "DELETED" || sandbox === undefined) return { t: "gone", name, last: sandbox, version };
  return { t: "stands", sandbox, isNew: event.kind === "ADDED", version };
}

function readable(object: unknown, name: string, disk: DiskKind, log: LogSink): SandboxReading | undefined {
  try {
    return readSandboxObject(object, disk);
  } catch (error) {
    if (!(error instanceof ObjectUnreadable)) throw error;
    log.warn(`the Sandbox ${name} cannot be read and is left out of the watch: ${error.message}`);
    return undefined;
  }
}
