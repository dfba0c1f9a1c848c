import { Deadline } from "@holdfast/async";
import { fileCallTimeoutMs, type HolderEpoch } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { FileInfo, ReadEvent, ReadWish, WalkWish, WatchEvent, WriteWish } from "../ports/files.ts";
import type { Guest } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import { type EpochClaim, readsOnly } from "./epoch-claim.ts";
import { askGuest, callGuest } from "./guest-call.ts";
import { writeFile } from "./write-file.ts";

export interface MakeDirectoryWish {
  readonly path: string;
  readonly makeParents: boolean;
  readonly mode: number | undefined;
}

export interface RemoveWish {
  readonly path: string;
  readonly recursive: boolean;
}

export interface MoveWish {
  readonly from: string;
  readonly to: string;
  readonly replace: boolean;
}

export interface WatchWish {
  readonly path: string;
  readonly recursive: boolean;
}

/** What a call on files is named in errors: as the RPC. */
export type FileOperation =
  | "ReadFile"
  | "WriteFile"
  | "StatFile"
  | "ListDirectory"
  | "WalkFiles"
  | "MakeDirectory"
  | "RemoveFile"
  | "MoveFile"
  | "WatchDirectory";

/**
 * The files of one workspace, as its guest has them (GuestFiles). Admission, the one rebind and the one re-read are inside. A change
 * whose outcome is not known ends as FILE_OUTCOME_UNKNOWN, and is never made twice.
 */
export class WorkspaceFiles {
  readonly #ws: Handle;
  readonly #change: EpochClaim;
  readonly #named: (operation: FileOperation, error: unknown) => unknown;

  /** `epoch`: of the calls that change something; those that only read need none. `named` adds to an error what it is about. */
  constructor(
    ws: Handle,
    epoch: HolderEpoch | undefined,
    named: (operation: FileOperation, error: unknown) => unknown,
  ) {
    this.#ws = ws;
    this.#change = { changes: true, epoch };
    this.#named = named;
  }

  async *read(wish: ReadWish, signal: AbortSignal): AsyncGenerator<ReadEvent, void> {
    let next = wish.offset;
    const open = async function* (guest: Guest): AsyncGenerator<ReadEvent> {
      for await (const event of guest.files.read(wish, signal)) {
        if (event.t === "chunk") next = event.offset + event.data.byteLength;
        yield event;
      }
    };
    const lost = (cause: Error): HoldfastError =>
      linkBroke(cause, `reading ${wish.path}`, `Read on from offset ${next}.`, { next_offset: String(next) });
    yield* this.#stream("ReadFile", open, lost, signal);
  }

  async write(wish: WriteWish, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<FileInfo> {
    return await this.#told("WriteFile", () => writeFile(this.#ws, wish, this.#change.epoch, content, signal));
  }

  async stat(path: string, signal: AbortSignal): Promise<FileInfo> {
    const lost = (cause: Error): HoldfastError => linkBroke(cause, `looking at ${path}`, "Call again.");
    return await this.#ask("StatFile", (guest, within) => guest.files.stat(path, within), readsOnly, lost, signal);
  }

  async *list(path: string, signal: AbortSignal): AsyncGenerator<readonly FileInfo[], void> {
    const lost = (cause: Error): HoldfastError => linkBroke(cause, `listing ${path || "."}`, "List again.");
    yield* this.#stream("ListDirectory", (guest) => guest.files.list(path, signal), lost, signal);
  }

  async *walk(wish: WalkWish, signal: AbortSignal): AsyncGenerator<readonly FileInfo[], void> {
    const lost = (cause: Error): HoldfastError => linkBroke(cause, `listing ${wish.path || "."}`, "List again.");
    yield* this.#stream("WalkFiles", (guest) => guest.files.walk(wish, signal), lost, signal);
  }

  async makeDirectory(wish: MakeDirectoryWish, signal: AbortSignal): Promise<FileInfo> {
    const lost = (cause: Error): HoldfastError =>
      changeUnknown(cause, wish.path, "the directory was made. Look at it before making it again");
    return await this.#ask(
      "MakeDirectory",
      (guest, within) => guest.files.makeDirectory(wish, within),
      this.#change,
      lost,
      signal,
    );
  }

  async remove(wish: RemoveWish, signal: AbortSignal): Promise<void> {
    const what = wish.recursive ? "it was removed, all or in part" : "it was removed";
    const lost = (cause: Error): HoldfastError =>
      changeUnknown(cause, wish.path, `${what}. Look at it before going on`);
    await this.#told("RemoveFile", () =>
      askGuest(
        this.#ws,
        { feature: "files", claim: this.#change, ask: (guest) => guest.files.remove(wish, signal), lost },
        signal,
      ),
    );
  }

  async move(wish: MoveWish, signal: AbortSignal): Promise<FileInfo> {
    const lost = (cause: Error): HoldfastError =>
      changeUnknown(
        cause,
        wish.from,
        `it stands at ${wish.to} now, or still where it was. Look at both before going on`,
      );
    return await this.#ask("MoveFile", (guest, within) => guest.files.move(wish, within), this.#change, lost, signal);
  }

  async *watch(wish: WatchWish, signal: AbortSignal): AsyncGenerator<WatchEvent, void> {
    const lost = (cause: Error): HoldfastError =>
      linkBroke(cause, `watching ${wish.path || "."}`, "Changes may have been missed: watch again, then list.");
    yield* this.#stream("WatchDirectory", (guest) => guest.files.watch(wish, signal), lost, signal);
  }

  async *#stream<Event>(
    operation: FileOperation,
    open: (guest: Guest) => AsyncIterable<Event>,
    lost: (cause: Error) => HoldfastError,
    signal: AbortSignal,
  ): AsyncGenerator<Event, void> {
    try {
      yield* callGuest(this.#ws, { feature: "files", claim: readsOnly, open, lost }, signal);
    } catch (error) {
      throw this.#named(operation, error);
    }
  }

  /** A short call: one that is not answered in time is over. */
  async #ask<Answer>(
    operation: FileOperation,
    ask: (guest: Guest, within: Deadline) => Promise<Answer>,
    claim: EpochClaim,
    lost: (cause: Error) => HoldfastError,
    signal: AbortSignal,
  ): Promise<Answer> {
    const inTime = async (guest: Guest): Promise<Answer> => {
      using within = new Deadline(this.#ws.deps.clock, fileCallTimeoutMs, signal);
      return await ask(guest, within);
    };
    return await this.#told(operation, () =>
      askGuest(this.#ws, { feature: "files", claim, ask: inTime, lost }, signal),
    );
  }

  async #told<Answer>(operation: FileOperation, call: () => Promise<Answer>): Promise<Answer> {
    try {
      return await call();
    } catch (error) {
      throw this.#named(operation, error);
    }
  }
}

/** Nothing was changed by a call that only reads. */
function linkBroke(cause: Error, doing: string, then: string, metadata: Record<string, string> = {}): HoldfastError {
  return new HoldfastError("AGENT_UNREACHABLE", {
    message: `The link to the guest broke while ${doing} (${cause.message}). Nothing was changed. ${then}`,
    metadata,
    cause,
  });
}

function changeUnknown(cause: Error, path: string, whether: string): HoldfastError {
  return new HoldfastError("FILE_OUTCOME_UNKNOWN", {
    message: `The link to the guest broke after the change of ${path} was sent (${cause.message}). It is not known whether ${whether}.`,
    metadata: { path },
    cause,
  });
}
