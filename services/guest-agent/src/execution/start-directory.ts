import { access, constants, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { AnsweredError } from "@holdfast/guest-link";
import { directoryRefused } from "../spawn/directory-handle.ts";
import { codeOf, StartsHeld } from "../spawn/not-started.ts";
import { LooksHeld, type PathLook, PathUnanswered } from "./path-looks.ts";
import { invalid } from "./start-wish.ts";

/** What a refusal is for want of room: by a short cause, and why. */
export type NoRoom = (cause: string, why: string) => AnsweredError;

/** Where programs may be started: the workspace's root, links resolved. */
export interface StartRoot {
  readonly path: string;
  /** Links resolved. */
  readonly real: string;
}

/**
 * The directory to start in: one that exists, at or below the workspace's root, symbolic links resolved. Never created. The root itself
 * is not looked at: where it cannot be entered, the start says so.
 */
export async function directoryOf(cwd: string, root: StartRoot, looks: PathLook, noRoom: NoRoom): Promise<string> {
  const path = resolve(root.path, cwd);
  if (path === root.path) return root.real;
  let real: Buffer;
  try {
    real = await looks.at(path, () => realDirectory(path));
  } catch (error) {
    throw unusable(path, error, noRoom);
  }
  // One character for each byte: names need not be UTF-8.
  if (isWithin(real.toString("latin1"), Buffer.from(root.real).toString("latin1"))) return utf8Of(real);
  throw new AnsweredError(
    "PATH_OUTSIDE_WORKSPACE",
    `Nothing was started: cwd ${path} leads outside the workspace's root ${root.path}. Start below it, or change directory in a shell.`,
    { field: "cwd", path, root: root.path },
  );
}

/** Rejects where it was the directory that was not found, or may not be entered: of the latter the kernel does not say which it was. */
export async function assertNotFor(cwd: string, refusal: unknown, looks: PathLook, noRoom: NoRoom): Promise<void> {
  if (refusal instanceof AnsweredError || refusal instanceof StartsHeld) return;
  // It may be there again.
  if (codeOf(refusal) === directoryRefused) throw unusable(cwd, refusal, noRoom);
  try {
    await looks.at(cwd, () => access(`${cwd}/.`, constants.X_OK));
  } catch (error) {
    throw unusable(cwd, error, noRoom);
  }
}

async function realDirectory(path: string): Promise<Buffer> {
  const real = await realpath(path, { encoding: "buffer" });
  if (!(await stat(real)).isDirectory()) throw invalid("cwd", `${path} is not a directory`);
  return real;
}

function isWithin(real: string, root: string): boolean {
  return real === root || real.startsWith(root === "/" ? "/" : `${root}/`);
}

function unusable(path: string, error: unknown, noRoom: NoRoom): unknown {
  if (error instanceof AnsweredError) return error;
  if (error instanceof LooksHeld) return noRoom("looks-held", error.message);
  const why = `${path} cannot be used (${error instanceof Error ? error.message : String(error)})`;
  if (!(error instanceof PathUnanswered)) return invalid("cwd", why);
  return new AnsweredError(
    "INVALID_REQUEST",
    `Nothing was started: cwd ${why}. Mend or unmount it, or start elsewhere.`,
    {
      field: "cwd",
      path,
      cause: "unanswered",
    },
  );
}

/** A program is given its directory as text, and one that is not quite it would be another or none. */
function utf8Of(path: Buffer): string {
  const text = path.toString();
  if (Buffer.from(text).equals(path)) return text;
  throw invalid(
    "cwd",
    "leads to a directory with a name that is not UTF-8; start above it, and change directory in a shell",
  );
}
