/** What a piece counts for besides its bytes. */
const pieceCostBytes = 128;

/** Bytes on their way, in the pieces in which they came; given out in pieces as large as may be sent at once. */
export class InputPieces {
  readonly #pieceMaxBytes: number;
  #parts: Uint8Array[] = [];
  bytes = 0;

  constructor(pieceMaxBytes: number) {
    this.#pieceMaxBytes = pieceMaxBytes;
  }

  /** What they take up. */
  get cost(): number {
    return this.bytes + pieceCostBytes * this.#parts.length;
  }

  push(data: Uint8Array): void {
    if (data.byteLength === 0) return;
    this.#parts.push(data);
    this.bytes += data.byteLength;
  }

  /** The first bytes, which stay; the same until some are dropped, unless there was room for more. */
  peek(): Uint8Array {
    const [first] = this.#parts;
    if (first === undefined) return new Uint8Array(0);
    if (first.byteLength >= this.#pieceMaxBytes) return first.subarray(0, this.#pieceMaxBytes);
    const joined: Uint8Array[] = [];
    let bytes = 0;
    for (const part of this.#parts) {
      if (bytes + part.byteLength > this.#pieceMaxBytes) break;
      joined.push(part);
      bytes += part.byteLength;
    }
    if (joined.length === 1) return first;
    // Kept joined: what is sent again is not put together again.
    const whole = Buffer.concat(joined, bytes);
    this.#parts.splice(0, joined.length, whole);
    return whole;
  }

  drop(bytes: number): void {
    this.bytes -= bytes;
    let left = bytes;
    let whole = 0;
    for (const part of this.#parts) {
      if (part.byteLength > left) break;
      left -= part.byteLength;
      whole += 1;
    }
    this.#parts.splice(0, whole);
    const [first] = this.#parts;
    if (left > 0 && first !== undefined) this.#parts[0] = first.subarray(left);
  }
}
