import { Origin } from "@holdfast/api/holdfast/v1/common_pb";
import { CreatePolicy, OpenWorkspaceResponseSchema } from "@holdfast/api/holdfast/v1/workspace_pb";
import { durationOf } from "../duration.ts";
import { remoteOf } from "../location.ts";
import { say, sayJson } from "../print.ts";
import type { Session } from "../program.ts";
import { progress } from "../progress.ts";

export interface OpenOptions {
  readonly template?: string;
  readonly create: "if-absent" | "must-exist" | "must-create";
  readonly timeout?: number;
}

const policies = {
  "if-absent": CreatePolicy.IF_ABSENT,
  "must-exist": CreatePolicy.MUST_EXIST,
  "must-create": CreatePolicy.MUST_CREATE,
} as const;

const origins: Partial<Record<Origin, string>> = {
  [Origin.CREATED]: "created",
  [Origin.ADOPTED_RUNNING]: "was running",
  [Origin.RESUMED]: "was suspended, and woken",
  [Origin.ALREADY_OPEN]: "was open",
};

export async function open({ connection, json, signal }: Session, workspace: string, options: OpenOptions) {
  const { workspaceId } = remoteOf(workspace);
  using _ = progress(`opening ${workspaceId}`);
  const response = await connection.workspaces.openWorkspace(
    {
      workspaceId,
      template: options.template ?? "",
      create: policies[options.create],
      ...(options.timeout === undefined ? {} : { readyTimeout: durationOf(options.timeout) }),
    },
    { signal },
  );
  if (json) return await sayJson(OpenWorkspaceResponseSchema, response);
  const origin = origins[response.workspace?.origin ?? Origin.UNSPECIFIED] ?? "is open";
  await say(`${workspaceId} ${origin}; its disk is at ${response.workspace?.root}`);
}
