import type { ExecutionEvent } from "@holdfast/workspace";

/** The first bytes of each of a command's two outputs, up to a bound; everything after a gap is left out, and said. */
export class CollectedOutput {
  readonly #keepBytes: number;
  readonly #kept = { stdout: new Kept(), stderr: new Kept() };
  #gapped = false;

  constructor(keepBytes: number) {
    this.#keepBytes = keepBytes;
  }

  add(event: Extract<ExecutionEvent, { t: "output" | "gap" }>): void {
    // A gap does not say which stream it is of: what follows it would not be "the first bytes" of either.
    if (event.t === "gap") this.#gapped = true;
    else if (this.#gapped) this.#kept[event.stream].truncated = true;
    else this.#kept[event.stream].add(event.data, this.#keepBytes);
  }

  result() {
    const { stdout, stderr } = this.#kept;
    return {
      stdout: stdout.bytes(),
      stderr: stderr.bytes(),
      stdoutTruncated: stdout.truncated || this.#gapped,
      stderrTruncated: stderr.truncated || this.#gapped,
    };
  }
}

class Kept {
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;
  truncated = false;

  add(data: Uint8Array, limit: number): void {
    const room = limit - this.#bytes;
    if (data.byteLength > room) this.truncated = true;
    if (room <= 0) return;
    // Copied: a piece may be a window into a much larger receive buffer.
    const piece = Uint8Array.from(data.subarray(0, room));
    this.#pieces.push(piece);
    this.#bytes += piece.byteLength;
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#pieces, this.#bytes);
  }
}
