import type { Readable } from "node:stream";

/** Silences that a drain may last in all, for a leftover that never falls silent. */
const silencesMax = 4;

/**
 * Waits for a command's outputs after its leader has exited: until all have ended, or none has said anything for a while, or
 * it has taken four such whiles. Time in which the outputs are held back on purpose does not count.
 */
export class Drain {
  readonly #silenceMs: number;
  #open: number;
  /** How often an output has said something. */
  #heard = 0;
  #waiting: PromiseWithResolvers<boolean> | undefined;
  #held = false;
  #silence: NodeJS.Timeout | undefined;
  #whole: NodeJS.Timeout | undefined;
  #wholeLeftMs = 0;
  #wholeSinceMs = 0;

  constructor(outputs: readonly Readable[], silenceMs: number) {
    this.#silenceMs = silenceMs;
    this.#open = outputs.length;
    for (const output of outputs) {
      output.on("error", () => undefined); // Its close follows.
      output.once("close", () => {
        this.#open -= 1;
        if (this.#open === 0) this.#settle(true);
      });
    }
  }

  /** Waits once. True: all outputs ended; false: something still holds one open. */
  wait(): Promise<boolean> {
    if (this.#open === 0) return Promise.resolve(true);
    this.#waiting = Promise.withResolvers();
    this.#wholeLeftMs = this.#silenceMs * silencesMax;
    const { promise } = this.#waiting;
    this.#run();
    return promise;
  }

  /** An output said something. */
  heard(): void {
    this.#heard += 1;
    if (this.#waiting && !this.#held) this.#armSilence();
  }

  /** Outputs are held back, or no longer. */
  hold(held: boolean): void {
    this.#held = held;
    if (!this.#waiting) return;
    if (held) this.#stop();
    else this.#run();
  }

  #run(): void {
    if (this.#held) return;
    this.#armSilence();
    this.#wholeSinceMs = performance.now();
    this.#whole = setTimeout(() => this.#judge(), this.#wholeLeftMs);
  }

  #stop(): void {
    this.#disarm();
    this.#wholeLeftMs = Math.max(0, this.#wholeLeftMs - (performance.now() - this.#wholeSinceMs));
  }

  #armSilence(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      const heard = this.#heard;
      this.#judge(() => heard === this.#heard);
    }, this.#silenceMs);
  }

  /**
   * The time is over. In an agent that stood still meanwhile it may be over before what was written is read, and timers come first: it
   * is decided once the outputs have been looked at. (drain.test.ts)
   */
  #judge(isSilent = (): boolean => true): void {
    setImmediate(() => {
      if (!this.#held && isSilent()) this.#settle(false);
    });
  }

  #disarm(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#whole);
  }

  #settle(ended: boolean): void {
    this.#disarm();
    this.#waiting?.resolve(ended);
    this.#waiting = undefined;
  }
}
