import type { WatchWorkspaceRequest } from "@holdfast/api/holdfast/v1/workspace_pb";
import { HoldfastError } from "@holdfast/errors";
import type { Watching } from "../watching.ts";
import type { HandlerContext } from "./call-context.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import { presentWatchItem } from "./present-watch.ts";
import { cursorOf, placeOfCursor } from "./watch-cursor.ts";

/** `WatchWorkspace`: parse, call, present. */
export async function* watchWorkspace(
  watching: Watching,
  request: WatchWorkspaceRequest,
  context: HandlerContext,
): AsyncGenerator<ReturnType<typeof presentWatchItem>> {
  const id = parseWorkspaceId(request.workspaceId);
  const under = { process: watching.process, workspace: id };
  const from = placeOfCursor(request.cursor, under);
  context.endsInDrainWith(watchStopped);
  for await (const item of watching.watch(id, from, context.signal)) {
    yield presentWatchItem(item, cursorOf(item.sequence, under));
  }
}

function watchStopped(): HoldfastError {
  return new HoldfastError("SERVICE_DRAINING", {
    message:
      "The watch ended: this process is stopping. Watch again; another process begins with how the workspace stands.",
  });
}
