import { outputChunkMaxBytes } from "@holdfast/contract";
import type { ExecutionEvent } from "@holdfast/workspace";

type Output = Extract<ExecutionEvent, { t: "output" }>;

/** What the source came to, as a value: a failure must not overtake the output that is held. */
type Step =
  | { readonly t: "event"; readonly event: ExecutionEvent }
  | { readonly t: "done" }
  | { readonly t: "failed"; readonly error: unknown };

/**
 * Joins small pieces of output that arrive in the same turn of the event loop: a gRPC message costs the same whether it carries one
 * byte or 32 KiB. The first piece after a silence goes at once. Never reads further than one event ahead.
 */
export async function* coalesceOutput(events: AsyncIterable<ExecutionEvent>): AsyncGenerator<ExecutionEvent> {
  const source = new Source(events);
  const turn = new Turn();
  try {
    for (;;) {
      const step = await source.next();
      if (step.t === "failed") throw step.error;
      if (step.t === "done") return;
      if (step.event.t !== "output" || turn.isFresh) {
        turn.begin();
        yield step.event;
        continue;
      }
      const held = new Held(step.event);
      while (await source.nextContinues(held, turn));
      yield held.joined();
    }
  } finally {
    await source.return();
  }
}

/** The events, one step ahead at most. */
class Source {
  readonly #iterator: AsyncIterator<ExecutionEvent>;
  #ahead: Promise<Step> | undefined;
  #over = false;

  constructor(events: AsyncIterable<ExecutionEvent>) {
    this.#iterator = events[Symbol.asyncIterator]();
  }

  async next(): Promise<Step> {
    const step = await this.#peek();
    this.#ahead = undefined;
    return step;
  }

  /** Takes the next event into what is held; false when the turn ends first, or it does not belong there. */
  async nextContinues(held: Held, turn: Turn): Promise<boolean> {
    const step = await Promise.race([this.#peek(), turn.ends()]);
    if (step?.t !== "event" || step.event.t !== "output" || !held.take(step.event)) return false;
    this.#ahead = undefined;
    return true;
  }

  /** Tells the source that nobody reads on; a source that is over knows. */
  async return(): Promise<void> {
    if (!this.#over) await this.#iterator.return?.();
  }

  #peek(): Promise<Step> {
    this.#ahead ??= this.#read();
    return this.#ahead;
  }

  async #read(): Promise<Step> {
    try {
      const result = await this.#iterator.next();
      if (!result.done) return { t: "event", event: result.value };
      this.#over = true;
      return { t: "done" };
    } catch (error) {
      this.#over = true;
      return { t: "failed", error };
    }
  }
}

/** One turn of the event loop. */
class Turn {
  #end: Promise<undefined> | undefined;

  get isFresh(): boolean {
    return this.#end === undefined;
  }

  begin(): void {
    void this.ends();
  }

  ends(): Promise<undefined> {
    this.#end ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#end = undefined;
        resolve(undefined);
      });
    });
    return this.#end;
  }
}

/** Pieces of one stream that continue each other. */
class Held {
  readonly #first: Output;
  readonly #pieces: Uint8Array[];
  #bytes: number;

  constructor(first: Output) {
    this.#first = first;
    this.#pieces = [first.data];
    this.#bytes = first.data.byteLength;
  }

  /** Takes a piece that continues what is held and fits into one chunk with it. */
  take({ stream, offset, data }: Output): boolean {
    const { stream: heldStream, offset: start } = this.#first;
    if (stream !== heldStream || offset !== start + this.#bytes) return false;
    if (this.#bytes + data.byteLength > outputChunkMaxBytes) return false;
    this.#pieces.push(data);
    this.#bytes += data.byteLength;
    return true;
  }

  joined(): Output {
    return this.#pieces.length === 1 ? this.#first : { ...this.#first, data: Buffer.concat(this.#pieces, this.#bytes) };
  }
}
