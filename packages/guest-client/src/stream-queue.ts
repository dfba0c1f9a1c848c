/** What a queue needs of the stream that feeds it. */
interface Source {
  pause(): void;
  resume(): void;
}

/** Bytes that may wait before the source is paused. */
const pauseAtBytes = 512 * 1024;
const resumeAtBytes = 128 * 1024;

/** Items between a stream and one reader that may be slow; the stream is held back by their size. */
export class StreamQueue<T> {
  #waiting: { readonly item: T; readonly bytes: number }[] = [];
  #head = 0;
  #bytes = 0;
  #source: Source | undefined;
  #paused = false;
  #over: { readonly error: Error | undefined } | undefined;
  #wakeReader: (() => void) | undefined;

  /** The stream to hold back when the reader is slow. */
  feedFrom(source: Source): void {
    this.#source = source;
    this.#holdBack();
  }

  push(item: T, bytes: number): void {
    this.#waiting.push({ item, bytes });
    this.#bytes += bytes;
    this.#holdBack();
    this.#wake();
  }

  /** Nothing more comes. What waits is still read. The first call counts. */
  end(error: Error | undefined): void {
    this.#over ??= { error };
    this.#wake();
  }

  /** The next item, which stays; undefined when none waits. */
  peek(): T | undefined {
    return this.#waiting[this.#head]?.item;
  }

  /** The next item if one waits. */
  shift(): T | undefined {
    const first = this.#waiting[this.#head];
    if (first === undefined) return undefined;
    this.#head += 1;
    if (this.#head > 64 && this.#head * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    this.#bytes -= first.bytes;
    if (this.#paused && this.#bytes <= resumeAtBytes) {
      this.#paused = false;
      this.#source?.resume();
    }
    return first.item;
  }

  /** The next item; undefined when the stream is complete. Rejects with its error after what came before it. */
  async next(): Promise<T | undefined> {
    for (;;) {
      const item = this.shift();
      if (item !== undefined) return item;
      if (this.#over?.error) throw this.#over.error;
      if (this.#over) return undefined;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  #holdBack(): void {
    if (this.#paused || this.#bytes < pauseAtBytes || this.#source === undefined) return;
    this.#paused = true;
    this.#source.pause();
  }

  #wake(): void {
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }
}
