import { setTimeout as beforeNextTry } from "node:timers/promises";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import type { SessionExit, SessionService } from "@holdfast/api/holdfast/v1/session_pb";

/** What a browser keeps of a terminal over a reload. */
export interface Kept {
  readonly attachmentId: string;
  readonly bootId: string;
  readonly offset: bigint;
  readonly nextSequence: bigint;
}

/** Writes that are not confirmed. The guest holds 64 that come ahead, and 256 KiB. */
const underWayMax = 4;

/**
 * A terminal as a web backend has it: output by AttachTerminal, input by WriteTerminal. Streams that break are taken up again, writes
 * without an answer are sent again; that output is one unbroken sequence is checked.
 */
export class BrowserTerminal {
  readonly over: Promise<SessionExit | undefined>;
  readonly pieces: Uint8Array[] = [];
  /** Bytes that were told missing. */
  missing = 0n;
  streams = 0;
  /** A stream stands now. */
  isAttached = false;
  attachmentId = "";
  bootId = "";
  offset: bigint;
  #sequence = 0n;
  readonly #ids: { readonly workspaceId: string; readonly sessionId: string };
  /** Asked anew for each stream and each write: through any replica. */
  readonly #client: () => Client<typeof SessionService>;
  readonly #end = new AbortController();
  readonly #attached = Promise.withResolvers<void>();
  readonly #waiting = new Set<() => void>();
  readonly #room: (() => void)[] = [];
  #underWay = 0;

  constructor(client: () => Client<typeof SessionService>, ids: BrowserTerminal["ids"], kept?: Kept) {
    this.#client = client;
    this.#ids = ids;
    this.attachmentId = kept?.attachmentId ?? "";
    this.bootId = kept?.bootId ?? "";
    this.offset = kept?.offset ?? 0n;
    this.#sequence = kept?.nextSequence ?? 0n;
    this.over = this.#follow();
    this.over.catch((why) => this.#attached.reject(why));
    this.#attached.promise.catch(() => undefined);
  }

  get ids(): { readonly workspaceId: string; readonly sessionId: string } {
    return this.#ids;
  }

  get text(): string {
    return Buffer.concat(this.pieces).toString("latin1");
  }

  /** The page is left. What is kept finds the attachment again. */
  async reload(): Promise<Kept> {
    this.#end.abort();
    await this.over;
    const { attachmentId, bootId, offset } = this;
    return { attachmentId, bootId, offset, nextSequence: this.#sequence };
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  get attached(): Promise<void> {
    return this.#attached.promise;
  }

  /** Types once, however often it takes. */
  async type(data: Uint8Array): Promise<void> {
    await this.#attached.promise;
    while (this.#underWay >= underWayMax) await new Promise<void>((resolve) => this.#room.push(resolve));
    const sequence = this.#sequence;
    this.#sequence += 1n;
    this.#underWay += 1;
    try {
      await this.#write(sequence, data);
    } finally {
      this.#underWay -= 1;
      this.#room.shift()?.();
    }
  }

  async #write(sequence: bigint, data: Uint8Array): Promise<void> {
    for (;;) {
      const { attachmentId } = this;
      try {
        await this.#client().writeTerminal({ ...this.#ids, attachmentId, sequence, data });
        return;
      } catch (error) {
        if (!mayPass(error)) throw error;
        await beforeNextTry(10);
      }
    }
  }

  async #follow(): Promise<SessionExit | undefined> {
    for (;;) {
      try {
        const { attachmentId, bootId } = this;
        const request = { ...this.#ids, attachmentId, fromOffset: this.offset, expectedBootId: bootId };
        this.streams += 1;
        for await (const { event } of this.#client().attachTerminal(request, { signal: this.#end.signal })) {
          if (event.case === "attached") this.#take(event.value);
          else if (event.case === "data") {
            if (event.value.offset !== this.offset)
              throw new Broken(`data at ${event.value.offset}, not ${this.offset}`);
            this.pieces.push(event.value.data);
            this.offset += BigInt(event.value.data.byteLength);
          } else if (event.case === "gap") {
            if (event.value.from !== this.offset) throw new Broken(`a gap at ${event.value.from}, not ${this.offset}`);
            this.missing += event.value.to - event.value.from;
            this.offset = event.value.to;
          } else if (event.case === "exited") {
            if (event.value.nextOffset !== this.offset) throw new Broken(`ended at ${event.value.nextOffset}`);
            return event.value.exit;
          }
          for (const wake of this.#waiting) wake();
          this.#waiting.clear();
        }
        throw new Broken("a stream ended well without the program's end");
      } catch (error) {
        this.isAttached = false;
        if (this.#end.signal.aborted) return undefined;
        if (!mayPass(error)) throw error;
        await beforeNextTry(10);
      }
    }
  }

  #take({
    attachmentId,
    bootId,
    nextInputSequence,
  }: {
    attachmentId: string;
    bootId: string;
    nextInputSequence: bigint;
  }) {
    if (this.attachmentId !== attachmentId) this.#sequence = nextInputSequence;
    this.attachmentId = attachmentId;
    this.bootId = bootId;
    this.isAttached = true;
    this.#attached.resolve();
  }
}

class Broken extends Error {}

/** As any client may judge: UNAVAILABLE, or a connection that broke without saying why. */
export function mayPass(error: unknown): boolean {
  if (error instanceof Broken) return false;
  const failure = ConnectError.from(error);
  const [info] = failure.findDetails(ErrorInfoSchema);
  return failure.code === Code.Unavailable || info === undefined || info.reason === "INPUT_OUT_OF_ORDER";
}
