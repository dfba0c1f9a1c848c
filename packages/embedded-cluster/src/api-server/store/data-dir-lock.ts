import { readFileSync } from "node:fs";

/** Thrown when another process holds the data directory. */
export class DataDirInUseError extends Error {
  readonly directory: string;
  /** The holder, or undefined where it left no readable mark. */
  readonly pid: number | undefined;

  constructor(directory: string, pid: number | undefined) {
    const holder = pid === undefined ? "another process" : `process ${pid}`;
    super(
      `The data directory ${directory} is in use by ${holder}. Nothing was changed. Stop it, or choose another directory.`,
    );
    this.name = "DataDirInUseError";
    this.directory = directory;
    this.pid = pid;
  }
}

/** Reads who marked the lock last. Only for the message: the lock itself is the database's. */
export function readHolderPid(markPath: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(markPath, "utf8"), 10);
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined; // no mark, or unreadable: the holder is not known
  }
}
