/** Numbers from a seed: the same seed makes the same cases. (mulberry32) */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 up to, not including, 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** 0 up to, not including, `below`. */
  whole(below: number): number {
    return Math.floor(this.fraction() * below);
  }

  chance(of: number): boolean {
    return this.fraction() < of;
  }

  pick<T>(choices: readonly T[]): T {
    const picked = choices[this.whole(choices.length)];
    if (picked === undefined) throw new RangeError("nothing to pick from");
    return picked;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; at += 1) bytes[at] = this.whole(256);
    return bytes;
  }
}
