/** Input that is to be confirmed as written, by the numbers under which it is sent. */
export class UnconfirmedInput {
  readonly #waiting: { readonly sequence: bigint; readonly data: Uint8Array }[] = [];
  #next = 0n;
  #bytes = 0;

  /** Bytes that are not confirmed. */
  get bytes(): number {
    return this.#bytes;
  }

  add(data: Uint8Array): void {
    this.#waiting.push({ sequence: this.#next, data });
    this.#next += 1n;
    this.#bytes += data.byteLength;
  }

  /** All before this sequence is written. */
  confirm(next: bigint): void {
    for (let first = this.#waiting[0]; first !== undefined && first.sequence < next; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#bytes -= first.data.byteLength;
    }
  }

  /** The attachment that is taken up again has written all before `next`: what is to be sent again, in order. */
  resume(next: bigint): readonly Uint8Array[] {
    this.confirm(next);
    return this.#waiting.map(({ data }) => data);
  }

  /**
   * A new attachment counts from `next`. What was typed before and never confirmed may have been written or not, and is not sent again;
   * answers how many bytes that are.
   */
  restart(next: bigint): number {
    const forgotten = this.#bytes;
    this.#waiting.length = 0;
    this.#bytes = 0;
    this.#next = next;
    return forgotten;
  }
}
