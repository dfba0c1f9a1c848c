import { closeSync, readFileSync, readSync } from "node:fs";
import { codeOf, refused } from "./file-errors.ts";
import type { Libc } from "./libc.ts";

/** The kernel's bits. */
export const inotifyBits = {
  modify: 0x2,
  attrib: 0x4,
  movedFrom: 0x40,
  movedTo: 0x80,
  create: 0x100,
  delete: 0x200,
  deleteSelf: 0x400,
  moveSelf: 0x800,
  unmount: 0x2000,
  overflow: 0x4000,
  ignored: 0x8000,
  onlyDirectory: 0x1_000_000,
  isDirectory: 0x4000_0000,
} as const;

const watched =
  inotifyBits.modify |
  inotifyBits.attrib |
  inotifyBits.movedFrom |
  inotifyBits.movedTo |
  inotifyBits.create |
  inotifyBits.delete |
  inotifyBits.deleteSelf |
  inotifyBits.moveSelf |
  inotifyBits.onlyDirectory;

export interface InotifyEvent {
  readonly watch: number;
  readonly mask: number;
  /** Empty: about the watched directory itself. */
  readonly name: Buffer;
}

const headerBytes = 16;
const readBytes = 64 * 1024;

/** One inotify instance: the kernel keeps its events, up to its limit, while nobody reads, and says when it lost some. */
export class Inotify implements Disposable {
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #path: string;
  readonly #unhook: () => void;
  readonly #buffer = Buffer.allocUnsafeSlow(readBytes);
  #rang = false;
  #wake: (() => void) | undefined;

  /** `path` is what errors name. */
  constructor(libc: Libc, path: string) {
    this.#libc = libc;
    this.#path = path;
    try {
      this.#fd = libc.inotifyOpen();
    } catch (error) {
      throw codeOf(error) === "EMFILE" ? limitReached(path, "max_user_instances") : error;
    }
    this.#unhook = onSignal(() => this.#ring());
    libc.signalWhenReadable(this.#fd);
  }

  /** Watches a directory. The same one again gives the same number. */
  add(directory: string): number {
    try {
      return this.#libc.inotifyAdd(this.#fd, directory, watched);
    } catch (error) {
      throw codeOf(error) === "ENOSPC" ? limitReached(this.#path, "max_user_watches") : error;
    }
  }

  remove(watch: number): void {
    this.#libc.inotifyRemove(this.#fd, watch);
  }

  /** Some of the events that wait, in order; none when none wait. */
  read(): InotifyEvent[] {
    this.#rang = false;
    let length: number;
    try {
      length = readSync(this.#fd, this.#buffer);
    } catch (error) {
      if (codeOf(error) === "EAGAIN") return [];
      throw error;
    }
    const events: InotifyEvent[] = [];
    for (let at = 0; at < length; ) {
      const nameBytes = this.#buffer.readUInt32LE(at + 12);
      const padded = this.#buffer.subarray(at + headerBytes, at + headerBytes + nameBytes);
      const end = padded.indexOf(0);
      events.push({
        watch: this.#buffer.readInt32LE(at),
        mask: this.#buffer.readUInt32LE(at + 4),
        name: Buffer.from(end < 0 ? padded : padded.subarray(0, end)),
      });
      at += headerBytes + nameBytes;
    }
    return events;
  }

  /** Resolves when something came since the last read, or the signal aborted. */
  async readable(signal: AbortSignal): Promise<void> {
    if (this.#rang || signal.aborted) return;
    const onAbort = (): void => this.#wake?.();
    signal.addEventListener("abort", onAbort, { once: true });
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    signal.removeEventListener("abort", onAbort);
  }

  [Symbol.dispose](): void {
    this.#unhook();
    closeSync(this.#fd);
  }

  #ring(): void {
    this.#rang = true;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

const listeners = new Set<() => void>();
let hooked = false;

/** SIGIO says only that something can be read somewhere. Its handler stays for good: without one the signal ends the process. */
function onSignal(listener: () => void): () => void {
  if (!hooked) {
    hooked = true;
    process.on("SIGIO", () => {
      for (const each of listeners) each();
    });
  }
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function limitReached(path: string, name: "max_user_instances" | "max_user_watches") {
  const value = readFileSync(`/proc/sys/fs/inotify/${name}`, "utf8").trim();
  return refused(
    "WATCH_LIMIT",
    path,
    `the kernel's limit fs.inotify.${name} (${value}) is reached, so not everything could be watched, and nothing is. ` +
      "Watch less, or let the node's operator raise it",
    { limit: `fs.inotify.${name}`, value },
  );
}
