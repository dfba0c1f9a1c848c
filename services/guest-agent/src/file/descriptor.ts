import * as fs from "node:fs";
import { promisify } from "node:util";

const { O_DIRECTORY, O_NOFOLLOW } = fs.constants;
/** Linux's O_PATH, which Node does not name: a handle of the file itself, that neither reads nor waits nor needs a right to it. */
const O_PATH = 0o10_000_000;

const open = promisify(fs.open);
const fstat = promisify(fs.fstat) as (fd: number, options: { bigint: true }) => Promise<fs.BigIntStats>;

/** A name as the kernel has it. */
export type Name = string | Buffer;

/**
 * An open descriptor. Names are looked up *through* it (`/proc/self/fd/N/name`), so that no rename or link elsewhere can turn the
 * lookup. Whoever opens one disposes of it.
 */
export class Descriptor implements Disposable {
  readonly fd: number;
  #closed = false;

  constructor(fd: number) {
    this.fd = fd;
  }

  /** The file itself, as a path. */
  get path(): string {
    return `/proc/self/fd/${this.fd}`;
  }

  /** An entry of this directory, as a path whose last component the kernel must not follow: that is the caller's to ask for. */
  at(name: Name): Name {
    return typeof name === "string" ? `${this.path}/${name}` : Buffer.concat([Buffer.from(`${this.path}/`), name]);
  }

  /** Pins an entry of this directory, whatever it is; a symbolic link itself. */
  async pin(name: Name): Promise<Descriptor> {
    return new Descriptor(await open(this.at(name), O_PATH | O_NOFOLLOW));
  }

  /** Pins an entry that must be a directory (ENOTDIR, ELOOP otherwise). */
  async pinDirectory(name: Name): Promise<Descriptor> {
    return new Descriptor(await open(this.at(name), O_PATH | O_NOFOLLOW | O_DIRECTORY));
  }

  /** Opens the very file that is pinned, and no other that took its name. */
  async reopen(flags: number): Promise<Descriptor> {
    return new Descriptor(await open(this.path, flags));
  }

  stat(): Promise<fs.BigIntStats> {
    return fstat(this.fd, { bigint: true });
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    fs.close(this.fd, () => undefined); // Nothing waits for it: what had to be durable was synced.
  }
}

/** Pins a directory by an ordinary path, links followed: for what the operator configured. */
export async function pinConfigured(path: string): Promise<Descriptor> {
  return new Descriptor(await open(path, O_PATH | O_DIRECTORY));
}
