/** What an upload needs of the connection that feeds it. */
interface Source {
  pause(): void;
  resume(): void;
}

/** Bytes that may wait for their reader before the sender is held back; what was parsed already comes on top. */
const pauseAtBytes = 512 * 1024;

/** The bytes that a caller sends on a stream, up to its EOF, for one reader. A slow reader holds the sender back through TCP. */
export class Upload {
  readonly #source: Source;
  #waiting: Buffer[] = [];
  #bytes = 0;
  #paused = false;
  #over: { readonly error: Error | undefined } | undefined;
  #wakeReader: (() => void) | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  /** All bytes that have come since the last read, at least one; undefined after EOF. Rejects when the caller's side ended without EOF. */
  async read(): Promise<readonly Buffer[] | undefined> {
    for (;;) {
      if (this.#over?.error) throw this.#over.error;
      if (this.#waiting.length > 0) return this.#take();
      if (this.#over) return undefined;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  push(bytes: Buffer): void {
    if (this.#over) return; // Nobody reads any more; the sender learns why from END.
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes >= pauseAtBytes && !this.#paused) {
      this.#paused = true;
      this.#source.pause();
    }
    this.#wake();
  }

  /** EOF, or the caller's end without it. The first call counts. Without EOF what waits is dropped: it is a part of nothing. */
  end(error?: Error): void {
    if (this.#over) return;
    this.#over = { error };
    if (error) this.#take();
    this.#wake();
  }

  #take(): readonly Buffer[] {
    const taken = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    if (this.#paused) {
      this.#paused = false;
      this.#source.resume();
    }
    return taken;
  }

  #wake(): void {
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }
}
