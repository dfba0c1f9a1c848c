import { executionLogPiecesMax } from "@holdfast/contract";
import type { LogBudget } from "./log-budget.ts";

export type Channel = "stdout" | "stderr";

/** Consecutive bytes of one channel. */
export interface Piece {
  readonly offset: number;
  readonly channel: Channel;
  readonly bytes: Buffer;
}

/** Below this, bytes are copied together: a Buffer object per byte would outweigh the bytes. */
const smallBytes = 4 * 1024;
const blockMinBytes = 256;
const blockMaxBytes = 16 * 1024;

/**
 * What a command wrote: both channels in the order in which they were read, at absolute offsets that never rewind. Bounded;
 * the oldest bytes go first, so what is kept is the true tail. Bytes once handed out are never changed.
 */
export class OutputLog {
  readonly #capBytes: number;
  readonly #budget: LogBudget;
  readonly #watchers = new Set<() => void>();
  #pieces: Piece[] = [];
  #head = 0;
  #start = 0;
  #end = 0;
  #block = Buffer.alloc(0);
  #blockFill = 0;

  constructor(capBytes: number, budget: LogBudget) {
    this.#capBytes = capBytes;
    this.#budget = budget;
    budget.add(this);
  }

  /** Offset of the oldest byte that is kept. */
  get start(): number {
    return this.#start;
  }

  /** Bytes written in all. */
  get end(): number {
    return this.#end;
  }

  get keptBytes(): number {
    return this.#end - this.#start;
  }

  append(channel: Channel, bytes: Buffer): void {
    if (bytes.length === 0) return;
    const offset = this.#end;
    this.#end += bytes.length;
    if (bytes.length >= smallBytes) this.#pieces.push({ offset, channel, bytes });
    else this.#appendSmall({ offset, channel, bytes });
    const excess = this.keptBytes - this.#capBytes;
    if (excess > 0) this.drop(excess);
    if (this.#pieces.length - this.#head > executionLogPiecesMax)
      this.drop(this.#pieces[this.#head]?.bytes.length ?? 0);
    this.#budget.grown(bytes.length);
    for (const watcher of this.#watchers) watcher();
  }

  /** The bytes at `offset` up to where their channel or piece ends; undefined at the end. `offset` must not be before `start`. */
  at(offset: number): Piece | undefined {
    if (offset < this.#start || offset >= this.#end) return undefined;
    let low = this.#head;
    let high = this.#pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#pieces[middle]?.offset ?? Number.POSITIVE_INFINITY) <= offset) low = middle;
      else high = middle - 1;
    }
    const piece = this.#pieces[low];
    if (piece === undefined || piece.offset === offset) return piece;
    return { offset, channel: piece.channel, bytes: piece.bytes.subarray(offset - piece.offset) };
  }

  /** Calls back after each append. Returns how to stop. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Drops this many of the oldest bytes, or all. Returns how many went. */
  drop(bytes: number): number {
    const until = Math.min(this.#end, this.#start + bytes);
    const before = this.#start;
    while (this.#start < until) {
      const first = this.#pieces[this.#head];
      if (first === undefined) break;
      const left = first.offset + first.bytes.length - until;
      if (left <= 0) {
        this.#dropPiece();
      } else {
        this.#pieces[this.#head] = { offset: until, channel: first.channel, bytes: first.bytes.subarray(-left) };
        this.#start = until;
      }
    }
    this.#budget.shrunk(this.#start - before);
    return this.#start - before;
  }

  /** Gives everything back. Nothing reads it any more. */
  dispose(): void {
    this.drop(this.keptBytes);
    this.#block = Buffer.alloc(0);
    this.#budget.remove(this);
  }

  #dropPiece(): void {
    const first = this.#pieces[this.#head];
    if (first === undefined) return;
    this.#start = first.offset + first.bytes.length;
    this.#head += 1;
    if (this.#head < 64 || this.#head * 2 < this.#pieces.length) return;
    this.#pieces = this.#pieces.slice(this.#head);
    this.#head = 0;
  }

  /** Lays small bytes one after the other in a block, and lengthens the last piece where they continue it. */
  #appendSmall({ offset, channel, bytes }: Piece): void {
    if (this.#block.length - this.#blockFill < bytes.length) {
      const size = Math.min(blockMaxBytes, Math.max(blockMinBytes, offset, bytes.length));
      this.#block = Buffer.allocUnsafeSlow(size);
      this.#blockFill = 0;
    }
    const from = this.#blockFill;
    this.#block.set(bytes, from);
    this.#blockFill += bytes.length;
    const lastAt = this.#pieces.length - 1;
    const last = lastAt >= this.#head ? this.#pieces[lastAt] : undefined;
    const lastFrom = last ? last.bytes.byteOffset - this.#block.byteOffset : 0;
    const continues =
      last?.channel === channel &&
      last.bytes.buffer === this.#block.buffer &&
      last.offset + last.bytes.length === offset &&
      lastFrom + last.bytes.length === from;
    if (last && continues) {
      this.#pieces[lastAt] = { ...last, bytes: this.#block.subarray(lastFrom, this.#blockFill) };
    } else {
      this.#pieces.push({ offset, channel, bytes: this.#block.subarray(from, this.#blockFill) });
    }
  }
}
