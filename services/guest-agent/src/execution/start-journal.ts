import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { AnsweredError } from "@holdfast/guest-link";
import { linesOf, type Mark, readMarks, type StartMark } from "./start-marks.ts";

const fileName = "executions";
/** A crash of the machine, not of the agent, may lose the marks of this last while. */
const syncAfterMs = 1_000;
/** Lines at which the file is written anew, if most of them say nothing any more. */
const rewriteAtLines = 16_384;

/**
 * The ids that were started, in a file of the pod's own storage, appended to before each spawn. A line that has been written outlives a
 * SIGKILL of the agent, since the kernel has it; it is synced a second later, for the sake of a crash of the machine: waiting for that
 * would cost each command a write to the disk. (docs/decisions/0012-starts-kept-before-the-spawn.md)
 */
export class StartJournal {
  readonly #path: string;
  #fd: number;
  #bytes = 0;
  #lines = 0;
  /** Lines when it was last written anew. */
  #keptLines = 0;
  /** Lines that come while it is being written anew. */
  #meanwhile: string[] | undefined;
  #syncing: NodeJS.Timeout | undefined;

  private constructor(path: string, fd: number, lines: number) {
    this.#path = path;
    this.#fd = fd;
    this.#startsAt(fd, lines);
  }

  /**
   * Reads what a former agent process left, hands it to `restore`, and writes anew what that keeps. Throws where it cannot be read or
   * written: a guest that has forgotten might run a command twice.
   */
  static async open(
    directory: string,
    restore: (marks: readonly StartMark[]) => Iterable<StartMark>,
  ): Promise<StartJournal> {
    const path = join(directory, fileName);
    try {
      const lines = [...restore(readMarks(textOf(path)))].flatMap(linesOf);
      await writeLines(`${path}.new`, lines);
      renameSync(`${path}.new`, path);
      return new StartJournal(path, openSync(path, constants.O_WRONLY | constants.O_APPEND), lines.length);
    } catch (error) {
      throw new Error(
        `which commands ran can not be read or kept in ${path} (${messageOf(error)}). A guest that has forgotten them might run one ` +
          "twice, and does not serve. Make the directory of HOLDFAST_AGENT_STATE_DIR writable, or replace the pod.",
      );
    }
  }

  /** Throws AnsweredError, and the journal is as it was. */
  append(mark: Mark): void {
    const line = linesOf(mark).join("");
    const bytes = Buffer.byteLength(line);
    let written: number;
    try {
      written = writeSync(this.#fd, line);
    } catch (error) {
      throw notKept(mark.id, error);
    }
    if (written < bytes) {
      ftruncateSync(this.#fd, this.#bytes); // A part of a line would spoil the next one.
      throw notKept(mark.id, Object.assign(new Error("ENOSPC: it was written in part"), { code: "ENOSPC" }));
    }
    this.#bytes += bytes;
    this.#lines += 1;
    this.#meanwhile?.push(line);
    this.#syncLater();
  }

  /** Writes it anew if most of it says nothing any more. `marks`: all that is to be kept. Appending goes on meanwhile. */
  async tidy(marks: () => Iterable<StartMark>): Promise<void> {
    if (this.#meanwhile !== undefined || this.#lines < rewriteAtLines + 2 * this.#keptLines) return;
    const lines = [...marks()].flatMap(linesOf);
    const meanwhile: string[] = [];
    this.#meanwhile = meanwhile;
    try {
      await writeLines(`${this.#path}.new`, lines);
      this.#takeNew(meanwhile, lines.length);
    } catch (error) {
      console.error("the journal of executions was not written anew:", error); // The old one grows on, and is as good.
    } finally {
      this.#meanwhile = undefined;
    }
  }

  close(): void {
    clearTimeout(this.#syncing);
    closeSync(this.#fd);
  }

  /** Synchronous: what came meanwhile stands in the new file before it takes the old one's place, and what comes goes to it. */
  #takeNew(meanwhile: readonly string[], kept: number): void {
    const fd = openSync(`${this.#path}.new`, constants.O_WRONLY | constants.O_APPEND);
    try {
      const more = meanwhile.join("");
      if (more !== "" && writeSync(fd, more) < Buffer.byteLength(more)) throw new Error("written in part");
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    closeSync(this.#fd);
    this.#fd = fd;
    this.#startsAt(fd, kept + meanwhile.length);
  }

  #startsAt(fd: number, lines: number): void {
    this.#bytes = fstatSync(fd).size;
    this.#lines = lines;
    this.#keptLines = lines;
  }

  #syncLater(): void {
    this.#syncing ??= setTimeout(() => {
      this.#syncing = undefined;
      fdatasync(this.#fd, (error) => {
        if (error) console.error("the journal of executions was not synced:", error);
      });
    }, syncAfterMs).unref();
  }
}

/** "" where there is none. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "";
    throw error;
  }
}

async function writeLines(path: string, lines: readonly string[]): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o600);
  try {
    await file.writeFile(lines.join(""));
    await file.datasync();
  } finally {
    await file.close();
  }
}

function notKept(id: string, error: unknown): AnsweredError {
  const code = codeOf(error);
  const isFull = ["ENOSPC", "EDQUOT", "EFBIG"].includes(code);
  return new AnsweredError(
    isFull ? "DISK_FULL" : "INTERNAL_ERROR",
    `Execution ${id} was not started: that its id is used could not be kept on the pod's storage (${messageOf(error)}). ` +
      "Free space on the node, or replace the pod.",
    { execution_id: id, errno: code },
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
