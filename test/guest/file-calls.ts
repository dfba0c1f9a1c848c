import { Deadline, systemClock } from "@holdfast/async";
import type { FileInfo, GuestFiles, ReadWish, WalkWish, WatchEvent, WriteWish } from "@holdfast/workspace";
import { onTestFinished } from "vitest";

/** A signal that never aborts. */
export const never = new AbortController().signal;
export const soon = (ms = 10_000) => new Deadline(systemClock, ms);

/** A write of some pieces. */
export function writes(
  files: GuestFiles,
  path: string,
  content: string | Uint8Array | AsyncIterable<Uint8Array>,
  more: Partial<WriteWish> = {},
  signal = never,
): Promise<FileInfo> {
  const wish = {
    path,
    mode: undefined,
    ifAbsent: false,
    ifUnchanged: undefined,
    makeParents: false,
    sizeBytes: undefined,
  };
  const pieces = typeof content === "string" || content instanceof Uint8Array ? once(Buffer.from(content)) : content;
  return files.write({ ...wish, ...more }, pieces, signal);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** The same piece again and again. */
export async function* repeated(piece: Uint8Array, times: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < times; at += 1) yield piece;
}

/** Reads to the end, checking that chunks are one sequence. */
export async function reads(files: GuestFiles, path: string, more: Partial<ReadWish> = {}): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let position = more.offset ?? 0;
  let opened = false;
  for await (const event of files.read({ path, offset: 0, lengthBytes: undefined, ...more }, never)) {
    if (event.t === "opened") opened = true;
    else {
      if (!opened || event.offset !== position) throw new Error(`a chunk at ${event.offset}, expected ${position}`);
      position += event.data.length;
      chunks.push(event.data);
    }
  }
  if (!opened) throw new Error("no opened");
  return Buffer.concat(chunks);
}

/** All files of a list or walk. */
export async function all(batches: AsyncIterable<readonly FileInfo[]>): Promise<FileInfo[]> {
  const files: FileInfo[] = [];
  for await (const batch of batches) {
    if (batch.length > 500) throw new Error(`a batch of ${batch.length}`);
    files.push(...batch);
  }
  return files;
}

export function walks(files: GuestFiles, path: string, more: Partial<WalkWish> = {}): Promise<FileInfo[]> {
  const wish = { path, glob: "", maxDepth: undefined, maxEntries: undefined, maxVisited: 1_000_000, hidden: false };
  return all(files.walk({ ...wish, ...more }, never));
}

export const pathsOf = (files: readonly FileInfo[]): string[] => files.map(({ path }) => path).sort();

/** The reason of a refusal. */
export async function reasonOf(work: Promise<unknown>): Promise<string> {
  const outcome = await work.then(
    () => "it succeeded",
    (error: unknown) => error,
  );
  return outcome instanceof Error && "reason" in outcome ? String(outcome.reason) : String(outcome);
}

/** A watch that has begun, whose events are kept. */
export interface Watching {
  readonly directories: number;
  readonly events: WatchEvent[];
  /** Resolves once an event has come that is asked for. */
  until(asked: (event: WatchEvent) => boolean): Promise<void>;
  /** Resolves with the error that ends it. */
  readonly ended: Promise<unknown>;
}

export async function watches(files: GuestFiles, path: string, recursive = false): Promise<Watching> {
  const over = new AbortController();
  onTestFinished(() => over.abort(new Error("the test is over")));
  const events: WatchEvent[] = [];
  const waiting = new Set<() => void>();
  const run = files.watch({ path, recursive }, over.signal)[Symbol.asyncIterator]();
  const first = await run.next();
  if (first.done || first.value.t !== "watching") throw new Error("a watch that does not begin with watching");
  const follow = async (): Promise<unknown> => {
    try {
      for (let next = await run.next(); !next.done; next = await run.next()) {
        events.push(next.value);
        for (const check of waiting) check();
      }
      return undefined;
    } catch (error) {
      return error;
    }
  };
  const ended = follow();
  return {
    directories: first.value.directories,
    events,
    ended,
    until(asked) {
      const seen = new Promise<void>((resolve) => {
        const check = (): void => {
          if (!events.some(asked)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      });
      return Promise.race([
        seen,
        ended.then((error) => {
          throw error;
        }),
      ]);
    },
  };
}

/** True for a change of a path. */
export function changeOf(path: string, kind?: "created" | "modified" | "removed") {
  return (event: WatchEvent): boolean =>
    event.t === "change" && event.path === path && (kind === undefined || event.kind === kind);
}
