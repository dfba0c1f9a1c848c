import { accessSync, constants, mkdirSync, realpathSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

const agentPrefix = "HOLDFAST_AGENT_";
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * What every command finds in its environment before the request adds to it (G14): the agent's own, without anything of the
 * agent (G1), with a HOME that is writable and outside the workspace.
 */
export function baseEnvironment(own: NodeJS.ProcessEnv, workspaceRoot: string): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && !name.startsWith(agentPrefix)) kept[name] = value;
  }
  const user = kept.USER ?? kept.LOGNAME ?? userName();
  return {
    ...kept,
    HOME: homeOf(kept.HOME, workspaceRoot),
    USER: user,
    LOGNAME: kept.LOGNAME ?? user,
    PATH: kept.PATH || defaultPath,
    TERM: kept.TERM || "xterm-256color",
    LANG: kept.LANG || "C.UTF-8",
  };
}

/** A uid without an entry in the user database has no name of its own. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "user";
  }
}

function homeOf(wished: string | undefined, workspaceRoot: string): string {
  if (wished && isWritable(wished) && !isWithin(wished, workspaceRoot)) return wished;
  const made = join(tmpdir(), `holdfast-home-${process.getuid?.() ?? 0}`);
  mkdirSync(made, { recursive: true, mode: 0o700 });
  return made;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** One character for each byte: names need not be UTF-8. */
function bytesOfReal(path: string): string {
  return realpathSync.native(path, { encoding: "buffer" }).toString("latin1");
}

/** True for the directory itself and everything below it, symbolic links resolved. */
function isWithin(path: string, root: string): boolean {
  const [real, realRoot] = [path, root].map(bytesOfReal) as [string, string];
  return real === realRoot || real.startsWith(realRoot === "/" ? "/" : `${realRoot}/`);
}
