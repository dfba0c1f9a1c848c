import { open } from "node:fs/promises";
import { AnsweredError } from "@holdfast/guest-link";
import { loadKoffi, nameOfErrno } from "../libc/koffi.ts";

/** Writes one file system out. Resolves once the kernel says that it is done; rejects with its error. */
export type SyncFileSystem = () => Promise<void>;

/**
 * syncfs on a directory's file system (G25). The descriptor is kept open from the start: the kernel reports a failed write-back to
 * those that were there before it. Undefined where the call cannot be made.
 */
export async function fileSystemOf(directory: string): Promise<SyncFileSystem | undefined> {
  const koffi = loadKoffi();
  if (koffi === undefined) return undefined;
  const syncfs = koffi.load(null).func("int syncfs(int fd)");
  const handle = await open(directory, "r");
  return () =>
    new Promise((resolve, reject) => {
      syncfs.async(handle.fd, (error: unknown, result: number) => {
        if (error) reject(error);
        else if (result === 0) resolve();
        else reject(new Error(`syncfs: ${nameOfErrno(koffi, koffi.errno())}`));
      });
    });
}

/** Flushes of one file system, one at a time: a call that the kernel does not answer holds a single thread. */
export class Flush {
  readonly #sync: SyncFileSystem;
  #running: Promise<void> | undefined;

  constructor(sync: SyncFileSystem) {
    this.#sync = sync;
  }

  /** Resolves with how long it took. Rejects with FLUSH_UNCONFIRMED: the kernel's error, or the time ended. */
  async run(timeoutMs: number): Promise<number> {
    const startedAtMs = performance.now();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(unconfirmed(`the kernel did not say that it is done within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      // One that runs already has begun before what this caller wrote: it is waited for, and then another one is made.
      while (this.#running !== undefined) {
        await Promise.race([this.#running.catch(() => undefined), late.promise]); // Its own caller is told its error.
      }
      this.#running = this.#sync().finally(() => {
        this.#running = undefined;
      });
      this.#running.catch(() => undefined); // Whoever waits for it is told; on a timeout nobody does any more.
      await Promise.race([this.#running, late.promise]);
      return performance.now() - startedAtMs;
    } catch (error) {
      throw error instanceof AnsweredError
        ? error
        : unconfirmed(error instanceof Error ? error.message : String(error));
    } finally {
      clearTimeout(timer);
    }
  }
}

function unconfirmed(why: string): AnsweredError {
  return new AnsweredError(
    "FLUSH_UNCONFIRMED",
    `The workspace's disk was told to write everything out, and that is not confirmed: ${why}. What was written lately may not be on it.`,
    { cause: why },
  );
}
