import { FlushOutcome } from "@holdfast/api/holdfast/v1/common_pb";
import { SuspendWorkspaceResponseSchema } from "@holdfast/api/holdfast/v1/workspace_pb";
import { durationOf } from "../duration.ts";
import { remoteOf } from "../location.ts";
import { say, sayJson } from "../print.ts";
import type { Session } from "../program.ts";
import { progress } from "../progress.ts";

export async function suspend(
  { connection, json, signal }: Session,
  workspace: string,
  options: { readonly timeout?: number },
) {
  const { workspaceId } = remoteOf(workspace);
  using _ = progress(`suspending ${workspaceId}`);
  const response = await connection.workspaces.suspendWorkspace(
    { workspaceId, ...(options.timeout === undefined ? {} : { stopTimeout: durationOf(options.timeout) }) },
    { signal },
  );
  if (json) return await sayJson(SuspendWorkspaceResponseSchema, response);
  await say(`${workspaceId} is suspended: its pod has been seen gone, its disk is kept`);
  const { flush } = response;
  if (flush?.cause && flush.outcome === FlushOutcome.UNREACHABLE) await say(`  not flushed: ${flush.cause}`);
}
