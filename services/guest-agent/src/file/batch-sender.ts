import { fileBatchMax } from "@holdfast/contract";
import type { AgentStream } from "@holdfast/guest-link";

/** Paths and link targets can be long; a message stays well below what any client takes. */
const batchMaxBytes = 512 * 1024;
const bytesOfOthers = 96;

/** Sends items of a list in messages, cut by number, and by size where names are long. */
export class BatchSender<T extends { readonly path: string; readonly linkTarget?: string }> {
  readonly #stream: AgentStream;
  readonly #send: (items: T[]) => boolean;
  #batch: T[] = [];
  #bytes = 0;

  constructor(stream: AgentStream, send: (items: T[]) => boolean) {
    this.#stream = stream;
    this.#send = send;
  }

  /** Waits when a message had to go and the caller is not keeping up. */
  async add(items: readonly T[]): Promise<void> {
    for (const item of items) {
      this.#batch.push(item);
      this.#bytes += 3 * (item.path.length + (item.linkTarget?.length ?? 0)) + bytesOfOthers;
      if (this.#batch.length >= fileBatchMax || this.#bytes >= batchMaxBytes) await this.flush();
    }
  }

  async flush(): Promise<void> {
    if (this.#batch.length === 0) return;
    const batch = this.#batch;
    this.#batch = [];
    this.#bytes = 0;
    if (!this.#send(batch)) await this.#stream.drained();
  }
}
