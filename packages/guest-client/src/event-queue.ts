import { outputChunkMaxBytes } from "@holdfast/contract";
import type { ExecutionEvent } from "@holdfast/workspace";

/** What a queue needs of the stream that feeds it. */
interface Source {
  pause(): void;
  resume(): void;
}

type OutputEvent = Extract<ExecutionEvent, { t: "output" }>;
type OtherEvent = Exclude<ExecutionEvent, { t: "output" }>;

/** Output that is to become one chunk. */
interface Pieces {
  readonly t: "pieces";
  readonly stream: OutputEvent["stream"];
  readonly offset: number;
  readonly parts: Uint8Array[];
  bytes: number;
}

/** Bytes that may wait before the source is paused. */
const pauseAtBytes = 256 * 1024;
const resumeAtBytes = 64 * 1024;
/** What an event, or a piece of output, counts for besides its bytes: a guest may send as many of them as it likes. */
const eventCostBytes = 128;
/** Smaller pieces are copied: a view of a few bytes would keep the whole chunk that they came in. */
const copiedBelowBytes = 4 * 1024;

/**
 * Events between a stream and one reader that may be slow. Small pieces that wait are joined and large ones split, so that no
 * chunk is above the limit of a message and none is needlessly small.
 */
export class EventQueue {
  #waiting: (Pieces | OtherEvent)[] = [];
  #head = 0;
  /** What waits costs: its bytes and so much for each event and piece. */
  #cost = 0;
  #source: Source | undefined;
  #paused = false;
  #over: { readonly error: Error | undefined } | undefined;
  #wakeReader: (() => void) | undefined;

  /** The stream to hold back when the reader is slow. */
  feedFrom(source: Source): void {
    this.#source = source;
    this.#holdBack();
  }

  push(event: ExecutionEvent): void {
    if (event.t === "output") this.#pushOutput(event);
    else {
      this.#waiting.push(event);
      this.#cost += eventCostBytes;
    }
    this.#holdBack();
    this.#wake();
  }

  /** Nothing more comes. What waits is still read. The first call counts. */
  end(error: Error | undefined): void {
    this.#over ??= { error };
    this.#wake();
  }

  /** The next event; undefined when the stream is complete. Rejects with its error after what came before it. */
  async next(): Promise<ExecutionEvent | undefined> {
    for (;;) {
      const first = this.#shift();
      if (first?.t === "pieces") return this.#chunkOf(first);
      if (first !== undefined) {
        this.#letGo(eventCostBytes);
        return first;
      }
      if (this.#over?.error) throw this.#over.error;
      if (this.#over) return undefined;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  #pushOutput({ stream, offset, data }: OutputEvent): void {
    for (let at = 0; at < data.length; at += outputChunkMaxBytes) {
      const view = data.subarray(at, at + outputChunkMaxBytes);
      this.#cost += view.length + eventCostBytes;
      const part = view.length < copiedBelowBytes ? Buffer.from(view) : view;
      const last = this.#waiting.length > this.#head ? this.#waiting.at(-1) : undefined;
      const joins =
        last?.t === "pieces" &&
        last.stream === stream &&
        last.offset + last.bytes === offset + at &&
        last.bytes + part.length <= outputChunkMaxBytes;
      if (joins) {
        last.parts.push(part);
        last.bytes += part.length;
      } else {
        this.#waiting.push({ t: "pieces", stream, offset: offset + at, parts: [part], bytes: part.length });
      }
    }
  }

  #shift(): Pieces | OtherEvent | undefined {
    const first = this.#waiting[this.#head];
    if (first === undefined) return undefined;
    this.#head += 1;
    if (this.#head > 64 && this.#head * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    return first;
  }

  #chunkOf({ stream, offset, parts, bytes }: Pieces): OutputEvent {
    this.#letGo(bytes + eventCostBytes * parts.length);
    const [only] = parts;
    return { t: "output", stream, offset, data: parts.length === 1 && only ? only : Buffer.concat(parts) };
  }

  #letGo(cost: number): void {
    this.#cost -= cost;
    if (!this.#paused || this.#cost > resumeAtBytes) return;
    this.#paused = false;
    this.#source?.resume();
  }

  #holdBack(): void {
    if (this.#paused || this.#cost < pauseAtBytes || this.#source === undefined) return;
    this.#paused = true;
    this.#source.pause();
  }

  #wake(): void {
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }
}
