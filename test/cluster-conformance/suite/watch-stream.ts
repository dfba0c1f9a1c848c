import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { isObject, type Json, textAt } from "./json.ts";

export interface WatchEvent {
  readonly type: string;
  readonly object: Json;
}

/** A watch as the stream of events that it is. */
export class WatchStream {
  readonly code: number;
  readonly contentType: string;
  readonly #message: IncomingMessage;
  readonly #lines: AsyncIterator<string>;

  constructor(message: IncomingMessage) {
    this.#message = message;
    this.code = message.statusCode ?? 0;
    this.contentType = message.headers["content-type"] ?? "";
    message.on("error", () => undefined); // a stream that is cut ends; `next` says so
    this.#lines = createInterface({ input: message })[Symbol.asyncIterator]();
  }

  /** The next event, or undefined when the stream has ended. */
  async next(): Promise<WatchEvent | undefined> {
    const { value, done } = await this.#lines.next();
    if (done === true) return undefined;
    const event: Json = JSON.parse(value);
    if (!isObject(event)) throw new Error(`no watch event: ${value}`);
    return { type: textAt(event, "type"), object: event.object ?? null };
  }

  /** This many events; fewer only where the stream ends. */
  async take(count: number): Promise<WatchEvent[]> {
    const taken: WatchEvent[] = [];
    while (taken.length < count) {
      const event = await this.next();
      if (event === undefined) break;
      taken.push(event);
    }
    return taken;
  }

  /** Every event up to and with the first that `isLast`, or to the end of the stream. */
  async upTo(isLast: (event: WatchEvent) => boolean): Promise<WatchEvent[]> {
    const taken: WatchEvent[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) {
      taken.push(event);
      if (isLast(event)) break;
    }
    return taken;
  }

  /** Everything until the server ends the stream. */
  rest(): Promise<WatchEvent[]> {
    return this.upTo(() => false);
  }

  close(): void {
    this.#message.destroy();
  }
}
