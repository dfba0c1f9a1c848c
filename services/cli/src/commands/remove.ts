import { Code, ConnectError } from "@connectrpc/connect";
import type { Connection } from "../connection.ts";
import { UsageError } from "../failure.ts";
import { remoteOf } from "../location.ts";
import { say } from "../print.ts";
import type { Session } from "../program.ts";
import { progress } from "../progress.ts";

export interface RemoveOptions {
  readonly recursive?: true;
  readonly deleteDisk?: true;
}

/** Removes a file, or, only where it is asked for by name, a whole workspace with its disk. */
export async function remove({ connection, json, signal }: Session, target: string, options: RemoveOptions) {
  const { workspaceId, path } = remoteOf(target);
  const isWhole = !target.includes(":");
  if (isWhole && !options.deleteDisk) {
    throw new UsageError(
      `rm ${workspaceId} deletes the workspace and its disk for good: say so with --delete-disk. To keep the disk, use suspend`,
    );
  }
  if (!isWhole && options.deleteDisk)
    throw new UsageError("--delete-disk goes with a workspace, not with a path in it");
  if (isWhole) {
    using _ = progress(`deleting ${workspaceId}`);
    const stood = await stands(connection, workspaceId, signal);
    // Asked for in any case: the answer says what is there now, and a repeated removal succeeds.
    await connection.workspaces.destroyWorkspace({ workspaceId, deleteDisk: true }, { signal });
    if (!json) await say(stood ? `${workspaceId} is gone, with its disk` : `there was no workspace ${workspaceId}`);
    return;
  }
  await connection.files.removeFile({ workspaceId, path, recursive: options.recursive === true }, { signal });
}

async function stands({ inventory }: Connection, workspaceId: string, signal: AbortSignal): Promise<boolean> {
  try {
    await inventory.getWorkspaceSummary({ workspaceId }, { signal });
    return true;
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.NotFound) return false;
    throw error;
  }
}
