import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { OperatingMode, WorkspaceSummarySchema } from "@holdfast/api/holdfast/v1/inventory_pb";
import { say, sayJson, write } from "../print.ts";
import type { Session } from "../program.ts";
import { table } from "../table.ts";

export interface ListOptions {
  readonly prefix?: string;
  readonly template?: string;
  readonly mode?: "running" | "suspended";
}

const modes = { running: OperatingMode.RUNNING, suspended: OperatingMode.SUSPENDED } as const;

/** Lists page by page; as JSON one workspace a line. */
export async function list({ connection, json, signal }: Session, options: ListOptions) {
  const rows: string[][] = [];
  for (let pageToken = ""; ; ) {
    const page = await connection.inventory.listWorkspaces(
      {
        pageSize: 500,
        pageToken,
        workspaceIdPrefix: options.prefix ?? "",
        template: options.template ?? "",
        mode: options.mode === undefined ? OperatingMode.UNSPECIFIED : modes[options.mode],
      },
      { signal },
    );
    for (const workspace of page.workspaces) {
      if (json) await sayJson(WorkspaceSummarySchema, workspace, "others");
      else {
        const mode = workspace.mode === OperatingMode.SUSPENDED ? "suspended" : "running";
        const { createdAt, modeChangedAt } = workspace;
        rows.push([workspace.workspaceId, mode, workspace.template, moment(createdAt), moment(modeChangedAt)]);
      }
    }
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  if (json) return;
  if (rows.length === 0) return await say("no workspaces");
  await write(table(["WORKSPACE", "ASKED TO BE", "TEMPLATE", "CREATED", "CHANGED"], rows));
}

function moment(time: Timestamp | undefined): string {
  return time === undefined ? "-" : timestampDate(time).toISOString().slice(0, 19).replace("T", " ");
}
