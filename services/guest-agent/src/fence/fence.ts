import { SerialQueue } from "@holdfast/async";
import { AnsweredError } from "@holdfast/guest-link";
import { EpochNotKept, type EpochStore } from "./epoch-file.ts";

/** Ends what a caller of a lower epoch holds: an attachment, an upload, a tunnel. Called once, synchronously; must not throw. */
export type EndHeld = (why: AnsweredError) => void;

/** The epoch that a call carries; undefined: none. */
export type CallEpoch = bigint | undefined;

interface Held {
  readonly level: bigint;
  readonly end: EndHeld;
}

/**
 * The guest's holder epoch (G5a). Everything that a call changes is judged when the call is admitted, and once more in the very
 * moment of the change: either by `admit` in the same synchronous step, or by running it as an `effect`, which a raise waits for.
 */
export class Fence {
  readonly #store: EpochStore;
  readonly #raises = new SerialQueue();
  /** Effects that run, by level. A call without an epoch has level 0: it is admitted only while the guest is unfenced. */
  readonly #running = new Map<bigint, number>();
  readonly #held = new Set<Held>();
  readonly #waiting = new Set<() => void>();
  /** Raised only by `#raiseTo`. */
  #epoch: bigint;
  #isDurable = true;

  /** `epoch`: what the store holds. */
  constructor(epoch: bigint, store: EpochStore) {
    this.#epoch = epoch;
    this.#store = store;
  }

  /** The guest's. 0 when it was never fenced. */
  get epoch(): bigint {
    return this.#epoch;
  }

  /** Throws unless a call with this epoch may change the guest now. Says nothing about later. */
  admit(epoch: CallEpoch): void {
    this.#levelOf(epoch);
  }

  /** `admit` for later, as often as it is called. Made here, so that it keeps nothing of a request. */
  admitting(epoch: CallEpoch): () => void {
    return () => this.admit(epoch);
  }

  /**
   * Judges, and runs a change in the same step. A raise answers only after it has settled, so it has to settle: what waits for
   * others, as a full pipe does, withdraws when `onRaise` says so. Rejects as `admit` throws; nothing ran then.
   */
  async effect<T>(epoch: CallEpoch, run: () => T | Promise<T>): Promise<T> {
    const level = this.#levelOf(epoch);
    this.#running.set(level, (this.#running.get(level) ?? 0) + 1);
    try {
      return await run();
    } finally {
      const left = (this.#running.get(level) ?? 1) - 1;
      if (left > 0) this.#running.set(level, left);
      else {
        this.#running.delete(level);
        for (const look of [...this.#waiting]) look();
      }
    }
  }

  /** Judges, and has `end` called when a raise takes the guest from this epoch. Returns how to forget it. Throws as `admit` does. */
  onRaise(epoch: CallEpoch, end: EndHeld): () => void {
    const held = { level: this.#levelOf(epoch), end };
    this.#held.add(held);
    return () => this.#held.delete(held);
  }

  /**
   * Raises the epoch and resolves once no effect of a lower one runs. The raise stands as soon as it is kept, also when the caller
   * does not wait for the effects; whoever asks for the same epoch again waits again. Rejects with AnsweredError, or as the signal.
   */
  async raise(epoch: bigint, signal: AbortSignal): Promise<bigint> {
    await this.#raises.run(() => this.#raiseTo(epoch));
    await this.#noneBelow(epoch, signal);
    if (this.#epoch > epoch) throw superseded(epoch, this.#epoch);
    return this.#epoch;
  }

  async #raiseTo(epoch: bigint): Promise<void> {
    if (epoch < this.#epoch) throw superseded(epoch, this.#epoch);
    if (epoch === this.#epoch && this.#isDurable) return;
    try {
      await this.#store.write(epoch);
      this.#isDurable = true;
    } catch (error) {
      if (!(error instanceof EpochNotKept)) throw error;
      // The next process may read the new number: this one must not serve under the old one meanwhile.
      if (error.inPlace) {
        this.#isDurable = false;
        this.#take(epoch);
      }
      throw notKept(epoch, error);
    }
    this.#take(epoch);
  }

  #take(epoch: bigint): void {
    this.#epoch = epoch;
    for (const held of [...this.#held]) {
      if (held.level >= epoch) continue;
      this.#held.delete(held);
      try {
        held.end(superseded(held.level, epoch));
      } catch (error) {
        console.error("fence: something of a lower epoch could not be ended:", error);
      }
    }
  }

  async #noneBelow(epoch: bigint, signal: AbortSignal): Promise<void> {
    const isQuiet = (): boolean => [...this.#running.keys()].every((level) => level >= epoch);
    if (isQuiet()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = (): void => {
      if (isQuiet()) resolve();
    };
    const give = (): void => reject(signal.reason);
    this.#waiting.add(look);
    signal.addEventListener("abort", give, { once: true });
    if (signal.aborted) give();
    try {
      await promise;
    } finally {
      this.#waiting.delete(look);
      signal.removeEventListener("abort", give);
    }
  }

  #levelOf(epoch: CallEpoch): bigint {
    const stored = this.#epoch;
    if (epoch === undefined) {
      if (stored > 0n) throw required(stored);
      return 0n;
    }
    if (epoch < stored) throw superseded(epoch, stored);
    if (epoch > stored) throw notTaken(epoch, stored);
    return epoch;
  }
}

function superseded(mine: bigint, stored: bigint): AnsweredError {
  return new AnsweredError(
    "HOLDER_EPOCH_SUPERSEDED",
    `The guest is held at epoch ${stored}, and this caller acts under ${mine}: from the change of holder on it changes nothing more. ` +
      "Programs go on. Re-read your holder record.",
    { mine: String(mine), stored: String(stored) },
  );
}

function notTaken(mine: bigint, stored: bigint): AnsweredError {
  return new AnsweredError(
    "HOLDER_EPOCH_NOT_TAKEN",
    `Nothing was done: the guest is held at epoch ${stored}, and this call carries ${mine}, which the guest was not fenced to. ` +
      "Open or resume the workspace with that number first.",
    { mine: String(mine), stored: String(stored) },
  );
}

function required(stored: bigint): AnsweredError {
  return new AnsweredError(
    "HOLDER_EPOCH_REQUIRED",
    `Nothing was done: the guest is held at epoch ${stored}, and this call carries none. Call through the tool that holds the fence.`,
    { stored: String(stored) },
  );
}

function notKept(epoch: bigint, error: EpochNotKept): AnsweredError {
  const { cause, inPlace } = error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const isFull = ["ENOSPC", "EDQUOT", "EFBIG"].includes(code);
  const stands = inPlace
    ? `The guest holds epoch ${epoch} from here on, but a crash of the machine may bring the former one back. Fence again`
    : "The epoch was not raised. Free space on the node, or replace the pod";
  return new AnsweredError(
    isFull ? "DISK_FULL" : "INTERNAL_ERROR",
    `Epoch ${epoch} could not be kept on the pod's storage (${error.message}). ${stands}.`,
    { epoch: String(epoch), errno: code, raised: String(inPlace) },
  );
}
