import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TerminalRequestSchema } from "@holdfast/api/holdfast/v1/session_pb";

type Request = MessageInitShape<typeof TerminalRequestSchema>;

/** What one stream is still to send, in order; its end is the stream's half-close. */
export class Outbox implements AsyncIterable<Request> {
  readonly #waiting: Request[] = [];
  #closed = false;
  #wake: (() => void) | undefined;

  send(request: Request): void {
    this.#waiting.push(request);
    this.#wake?.();
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Request> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#closed) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
