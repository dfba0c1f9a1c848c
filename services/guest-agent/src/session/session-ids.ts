import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isSessionId, type SessionId, sessionsMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";

/** Ids of former agent processes that are kept, the newest. */
const lostMax = 16 * sessionsMax;

/** "." and ".." are session ids, and no names for files. */
const prefix = "id-";

/**
 * Which sessions former agent processes of this pod had: their ids are in files that outlive the agent, made before the program starts
 * and removed when the session is forgotten. So an old id is lost, and never a silent new shell.
 */
export class SessionIds {
  readonly #directory: string;
  readonly #bootId: string;
  readonly #lost = new Map<SessionId, string>();

  /** Reads what former processes left. Throws when it cannot: what was here is not known then. */
  constructor(stateDirectory: string, bootId: string) {
    this.#directory = join(stateDirectory, "sessions");
    this.#bootId = bootId;
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    const found = readdirSync(this.#directory)
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length))
      .filter(isSessionId)
      .map((id) => ({ id, atMs: statSync(this.#fileOf(id)).mtimeMs }))
      .sort((one, other) => other.atMs - one.atMs);
    for (const { id } of found.slice(0, lostMax)) this.#lost.set(id, readFileSync(this.#fileOf(id), "latin1"));
    for (const { id } of found.slice(lostMax)) rmSync(this.#fileOf(id), { force: true });
  }

  /** The boot id of the process that had it. */
  lostWith(id: SessionId): string | undefined {
    return this.#lost.get(id);
  }

  /**
   * Before the start. A process that is killed needs no fsync: what was written is the kernel's. Throws AnsweredError when it cannot be
   * kept: a program that another agent process would know nothing of is not started. Returns how to take it back, if nothing was.
   */
  remember(id: SessionId): () => void {
    const lostWith = this.#lost.get(id);
    const takeBack = (): void => {
      if (lostWith === undefined) this.forget(id);
      else this.#loseAgain(id, lostWith);
    };
    try {
      writeFileSync(this.#fileOf(id), this.#bootId, { mode: 0o600 });
    } catch (error) {
      if (lostWith === undefined) this.forget(id); // What may have been written in part would call it lost.
      throw notKept(id, error);
    }
    this.#lost.delete(id);
    return takeBack;
  }

  forget(id: SessionId): void {
    rmSync(this.#fileOf(id), { force: true });
  }

  #loseAgain(id: SessionId, bootId: string): void {
    this.#lost.set(id, bootId);
    try {
      writeFileSync(this.#fileOf(id), bootId, { mode: 0o600 });
    } catch (error) {
      console.error(`session ${id}: the next agent process will take it for this one's:`, error); // Lost all the same.
    }
  }

  #fileOf(id: SessionId): string {
    return join(this.#directory, `${prefix}${id}`);
  }
}

function notKept(id: SessionId, error: unknown): AnsweredError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return new AnsweredError(
    code === "ENOSPC" || code === "EDQUOT" ? "DISK_FULL" : "INTERNAL_ERROR",
    `Session ${id} was not started: its id could not be kept on the pod's storage (${code || String(error)}). Free space on the node, or replace the pod.`,
    { session_id: id, errno: code },
  );
}
