import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { StartFailure } from "./start-failure.ts";

/** Makes the directory if it is absent, for its owner only; throws a StartFailure when it cannot be made or written. */
export function prepareDataDirectory(path: string): void {
  try {
    // One by one: Node's own recursive mkdir never returns for a path below /proc.
    for (const folder of missingFolders(path)) mkdirSync(folder, { mode: 0o700 });
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** What keeps a start from writing what it has to, and is the operator's to mend: a store that is no database included. */
const storageTrouble = new Set(["ERR_SQLITE_ERROR", "ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "EACCES", "ENOTDIR"]);

export function isStorageTrouble(error: unknown): boolean {
  return error instanceof Error && "code" in error && storageTrouble.has(String(error.code));
}

export function unusable(path: string, error: unknown): StartFailure {
  const why = error instanceof Error ? error.message : String(error);
  return new StartFailure(`the data directory ${path} cannot be used: ${why}`, error);
}

/** The folders that are not there, outermost first. */
function missingFolders(path: string): string[] {
  const missing: string[] = [];
  for (let at = path; !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.unshift(at);
  return missing;
}
