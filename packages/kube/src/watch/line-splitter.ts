/** Splits a stream of bytes into lines. A line that is too long is an error: it would be held in memory whole. */
export class LineSplitter {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #heldBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this chunk completes, without their ends. Throws when the unfinished one is too long. */
  push(chunk: Uint8Array): readonly string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      this.#hold(chunk.subarray(from, end));
      lines.push(Buffer.concat(this.#parts).toString("utf8"));
      this.#parts = [];
      this.#heldBytes = 0;
      from = end + 1;
    }
    this.#hold(chunk.subarray(from));
    return lines;
  }

  #hold(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#heldBytes += part.length;
    if (this.#heldBytes > this.#maxBytes) throw new Error(`a line is longer than ${this.#maxBytes} bytes`);
    this.#parts.push(part);
  }
}
