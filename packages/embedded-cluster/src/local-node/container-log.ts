import { type FileHandle, open, rename } from "node:fs/promises";
import { Writable } from "node:stream";

/**
 * A container's output on disk: at most `limitBytes` in the file and as much in one older file beside it (`.1`). What
 * cannot be stored is dropped and reported through `onLost`: a full disk must not stop the container that writes.
 */
export class ContainerLog extends Writable {
  readonly #path: string;
  readonly #limitBytes: number;
  readonly #onLost: (error: unknown) => void;
  #file: FileHandle | undefined;
  #size = 0;

  constructor(path: string, onLost: (error: unknown) => void, limitBytes = 1024 * 1024) {
    super({ decodeStrings: true });
    this.#path = path;
    this.#onLost = onLost;
    this.#limitBytes = limitBytes;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#append(chunk)
      .catch(this.#onLost)
      .then(() => done());
  }

  override _final(done: (error?: Error | null) => void): void {
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) done();
    else
      file
        .close()
        .catch(this.#onLost)
        .then(() => done());
  }

  async #append(chunk: Buffer): Promise<void> {
    if (this.#file !== undefined && this.#size + chunk.length > this.#limitBytes) {
      await this.#file.close();
      this.#file = undefined;
      await rename(this.#path, `${this.#path}.1`);
    }
    if (this.#file === undefined) {
      this.#file = await open(this.#path, "a", 0o600);
      this.#size = (await this.#file.stat()).size;
    }
    await this.#file.appendFile(chunk);
    this.#size += chunk.length;
  }
}
