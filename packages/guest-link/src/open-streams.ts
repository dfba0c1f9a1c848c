import type { CallerStream } from "./stream-caller.ts";

const idMax = 2 ** 32 - 1;

/** The streams that one caller has open, by the numbers under which it opened them. */
export class OpenStreams {
  readonly #byId = new Map<number, CallerStream>();
  #lastId = 0;

  get size(): number {
    return this.#byId.size;
  }

  /** Gives the stream a number that no other has or has had, as long as there are such. */
  add(stream: CallerStream): number {
    do this.#lastId = (this.#lastId % idMax) + 1;
    while (this.#byId.has(this.#lastId));
    this.#byId.set(this.#lastId, stream);
    return this.#lastId;
  }

  /** False: it was not among them. */
  delete(stream: CallerStream): boolean {
    return stream.id !== undefined && this.#byId.delete(stream.id);
  }

  /** The agent has ended one by force. One that is over here already is none of them, and that is right. */
  endByForce(id: number, payload: Buffer): void {
    this.#byId.get(id)?.endByForce(payload);
  }

  destroyAll(cause: unknown): void {
    for (const stream of this.#byId.values()) stream.destroy(cause);
  }
}
