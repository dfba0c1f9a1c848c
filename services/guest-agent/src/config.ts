import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { isIP } from "node:net";
import { agentPort } from "@holdfast/contract";

/** What the agent is told by its environment. */
export interface AgentConfig {
  /** The bind token: the pod's uid. */
  readonly token: string;
  /** The only address it listens on. */
  readonly host: string;
  readonly port: number;
  /** Where the disk is mounted. */
  readonly workspaceRoot: string;
  /** Unix socket on which readiness is asked. */
  readonly readySocket: string;
  /** What outlives the agent process within its pod: the holder epoch, and which commands ran. Undefined: a directory beside the ready socket. */
  readonly stateDirectory: string | undefined;
  /** Random, one per process. */
  readonly bootId: string;
}

export const readySocketDefault = "/run/holdfast/agent.sock";

/** Reads the configuration. Throws with everything that is wrong with it. */
export function readConfig(env: NodeJS.ProcessEnv): AgentConfig {
  const problems: string[] = [];
  const token = env.HOLDFAST_AGENT_TOKEN ?? "";
  if (token === "") problems.push("HOLDFAST_AGENT_TOKEN is not set: without a token nobody could prove who they are");
  const host = env.HOLDFAST_AGENT_HOST ?? "";
  if (isIP(host) === 0) problems.push("HOLDFAST_AGENT_HOST must be the IP address to listen on (the pod's)");
  const port = env.HOLDFAST_AGENT_PORT === undefined ? agentPort : Number(env.HOLDFAST_AGENT_PORT);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) problems.push("HOLDFAST_AGENT_PORT must be 0 to 65535");
  const workspaceRoot = env.HOLDFAST_WORKSPACE_ROOT ?? "";
  if (!isDirectory(workspaceRoot)) {
    problems.push(
      `HOLDFAST_WORKSPACE_ROOT must be an existing directory, absolute; it is ${JSON.stringify(workspaceRoot)}`,
    );
  }
  const stateDirectory = env.HOLDFAST_AGENT_STATE_DIR;
  if (stateDirectory !== undefined && !isDirectory(stateDirectory)) {
    problems.push(
      `HOLDFAST_AGENT_STATE_DIR must be an existing directory, absolute, such as a mounted emptyDir; it is ${JSON.stringify(stateDirectory)}`,
    );
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const readySocket = env.HOLDFAST_AGENT_SOCKET ?? readySocketDefault;
  return { token, host, port, workspaceRoot, readySocket, stateDirectory, bootId: randomUUID() };
}

/** The directory of what outlives the agent process. Where none is given, one that lasts as long as the container's own file system. */
export function stateDirectoryOf(config: AgentConfig): string {
  return config.stateDirectory ?? `${config.readySocket}.state`;
}

function isDirectory(path: string): boolean {
  return path.startsWith("/") && (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}
