import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { SessionKind, SessionSchema, type Session as TerminalSession } from "@holdfast/api/holdfast/v1/session_pb";
import { remoteOf } from "../location.ts";
import { say, sayJson, write } from "../print.ts";
import { printable } from "../printable.ts";
import type { Session } from "../program.ts";
import { table } from "../table.ts";

/** Lists the sessions of a workspace; as JSON one a line. */
export async function sessions({ connection, json, signal }: Session, workspace: string) {
  const { workspaceId } = remoteOf(workspace);
  const { sessions } = await connection.sessions.listSessions({ workspaceId }, { signal });
  if (json) {
    for (const session of sessions) await sayJson(SessionSchema, session, "others");
    return;
  }
  if (sessions.length === 0) return await say("no sessions");
  const rows = sessions.map((session) => [
    session.sessionId,
    session.kind === SessionKind.TERMINAL ? "terminal" : "detached",
    stateOf(session),
    moment(session.startedAt),
    moment(session.lastOutputAt),
    printable([session.command || "(shell)", ...session.args].join(" ")),
  ]);
  await write(table(["SESSION", "KIND", "STATE", "STARTED", "LAST OUTPUT", "COMMAND"], rows));
}

export interface KillOptions {
  readonly signal?: string;
}

/** Ends a session and what belongs to it; another signal than KILL is only sent. */
export async function killSession(
  { connection, json, signal }: Session,
  workspace: string,
  sessionId: string,
  options: KillOptions,
) {
  const { workspaceId } = remoteOf(workspace);
  const request = { workspaceId, sessionId, signal: options.signal ?? "" };
  const { session } = await connection.sessions.killSession(request, { signal });
  if (session === undefined) return;
  if (json) await sayJson(SessionSchema, session);
  else await say(`${sessionId} ${stateOf(session)}`);
}

function stateOf({ exit, attached }: TerminalSession): string {
  if (exit === undefined) return attached ? "runs, attached" : "runs";
  return exit.status.case === "signal" ? `ended by ${exit.status.value}` : `exited with ${exit.status.value ?? 0}`;
}

function moment(time: Timestamp | undefined): string {
  return time === undefined ? "-" : timestampDate(time).toISOString().slice(0, 19).replace("T", " ");
}
