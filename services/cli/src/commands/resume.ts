import { ResumeWorkspaceResponseSchema } from "@holdfast/api/holdfast/v1/workspace_pb";
import { durationOf } from "../duration.ts";
import { remoteOf } from "../location.ts";
import { say, sayJson } from "../print.ts";
import type { Session } from "../program.ts";
import { progress } from "../progress.ts";

export async function resume(
  { connection, json, signal }: Session,
  workspace: string,
  options: { readonly timeout?: number },
) {
  const { workspaceId } = remoteOf(workspace);
  using _ = progress(`resuming ${workspaceId}`);
  const response = await connection.workspaces.resumeWorkspace(
    { workspaceId, ...(options.timeout === undefined ? {} : { readyTimeout: durationOf(options.timeout) }) },
    { signal },
  );
  if (json) return await sayJson(ResumeWorkspaceResponseSchema, response);
  await say(`${workspaceId} runs, in pod ${response.workspace?.pod?.name}; its disk is at ${response.workspace?.root}`);
}
