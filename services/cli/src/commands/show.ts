import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type PodFacts, type Workspace, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { GetWorkspaceResponseSchema } from "@holdfast/api/holdfast/v1/workspace_pb";
import { remoteOf } from "../location.ts";
import { sayJson, write } from "../print.ts";
import { printable } from "../printable.ts";
import type { Session } from "../program.ts";
import { sizeWords } from "../progress.ts";
import { table } from "../table.ts";

/** Tells how one workspace stands. Wakes nothing; its guest is asked where it is open in the service. */
export async function show({ connection, json, signal }: Session, workspace: string) {
  const { workspaceId } = remoteOf(workspace);
  const response = await connection.workspaces.getWorkspace({ workspaceId, includeHealth: true }, { signal });
  if (json) return await sayJson(GetWorkspaceResponseSchema, response);
  if (response.workspace) await write(workspaceTable(response.workspace));
}

const states: Partial<Record<WorkspaceState, string>> = {
  [WorkspaceState.STARTING]: "starting",
  [WorkspaceState.RUNNING]: "running",
  [WorkspaceState.SUSPENDING]: "suspending",
  [WorkspaceState.SUSPENDED]: "suspended",
  [WorkspaceState.DELETING]: "being deleted",
  [WorkspaceState.NOT_READY]: "not ready",
};

/** A workspace for people, one fact a line; what is not known is said to be so. */
export function workspaceTable(workspace: Workspace): string {
  const { workspaceId, transition, template, root, pod, holderEpoch } = workspace;
  const state = states[workspace.state] ?? "not known";
  const waiting = transition?.waitingFor;
  const rows = [
    ["state", waiting ? `${state}, waiting for ${waiting}` : state],
    ["template", template || unknown],
    ["root", root || unknown],
    ["holder epoch", holderEpoch === undefined ? unknown : String(holderEpoch)],
    ...(pod ? podRows(pod) : [["pod", "none"]]),
    ["held open here", held(workspace)],
  ];
  return table(
    ["WORKSPACE", workspaceId],
    rows.map((cells) => cells.map(printable)),
  );
}

const unknown = "not known";

function podRows({ name, node, image, restartCount, termination, disk, memory }: PodFacts): string[][] {
  return [
    ["pod", node === "" ? name : `${name} on ${node}`],
    ["image", image || unknown],
    ["restarts", String(restartCount)],
    ...(termination ? [["last ended", endWords(termination)]] : []),
    ["disk", disk ? diskWords(disk) : unknown],
    ["memory", memory ? memoryWords(memory) : unknown],
  ];
}

function endWords({ reason, exitCode, finishedAt }: NonNullable<PodFacts["termination"]>): string {
  const words = [reason || "for a reason that is not known"];
  if (exitCode !== undefined) words.push(`exit code ${exitCode}`);
  if (finishedAt) words.push(timestampDate(finishedAt).toISOString().slice(0, 19).replace("T", " "));
  return words.join(", ");
}

function diskWords(disk: NonNullable<PodFacts["disk"]>): string {
  const { usedBytes, totalBytes, availableBytes, usedInodes, totalInodes } = disk;
  const bytes = `${size(usedBytes)} of ${size(totalBytes)} used, ${size(availableBytes)} free`;
  return usedInodes === undefined || totalInodes === undefined
    ? bytes
    : `${bytes}; ${usedInodes} of ${totalInodes} inodes`;
}

function memoryWords({ usedBytes, workingSetBytes, limitBytes }: NonNullable<PodFacts["memory"]>): string {
  const used = `${size(usedBytes)}${limitBytes === undefined ? "" : ` of ${size(limitBytes)}`} used`;
  return workingSetBytes === undefined ? used : `${used}, ${size(workingSetBytes)} of it in work`;
}

function held({ liveExecutions, liveSessions, livePorts }: Workspace): string {
  return [count(liveExecutions, "execution"), count(liveSessions, "session"), count(livePorts, "port")].join(", ");
}

function count(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? "" : "s"}`;
}

function size(bytes: bigint): string {
  return sizeWords(Number(bytes));
}
