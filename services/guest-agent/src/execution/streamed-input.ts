import { closeSync, constants, openSync } from "node:fs";
import { Socket } from "node:net";
import { SerialQueue } from "@holdfast/async";
import { AnsweredError } from "@holdfast/guest-link";

/** Part of the input of a program. */
export interface Input {
  /** Position of `data` in the whole. */
  readonly offset: number;
  readonly data: Uint8Array;
  /** Nothing follows `data`. */
  readonly end: boolean;
}

/** What has been taken. */
export interface InputTaken {
  readonly nextOffset: number;
  /** The program takes no more. */
  readonly closed: boolean;
}

/** Under which a write may go on: every change runs as an effect, and `signal` takes back what waits. */
export interface InputTurn {
  effect<T>(change: () => Promise<T>): Promise<T>;
  readonly signal: AbortSignal;
}

/** Up to so many bytes a pipe takes whole or not at all (PIPE_BUF), so that it is known which when a write is taken back. */
const pieceBytes = 4_096;

/**
 * A program's input as it is written bit by bit: in order and once (G12). A write waits while the pipe is full, and can be taken back
 * then: what the program has is counted exactly, and the next write goes on there.
 */
export class StreamedInput {
  /** Keeps the pipe open for the program whatever becomes of a write; nothing is written through it. */
  readonly #keptFd: number;
  readonly #turns = new SerialQueue();
  #socket: Socket | undefined;
  #position = 0;
  /** `ended`: by whoever writes. `closed`: the program takes no more. */
  #state: "open" | "ended" | "closed" = "open";

  /** Takes the descriptor for itself. */
  constructor(writeFd: number) {
    this.#keptFd = writeFd;
  }

  /** Resolves once all of it is in the pipe, or the program has closed it. Rejects with AnsweredError, or as the signal. */
  write(input: Input, turn: InputTurn): Promise<InputTaken> {
    return this.#turns.run(() => this.#write(input, turn), turn.signal);
  }

  /**
   * Gives it whole, in place of any write. Resolves once the program has all of it, or nobody can read it any more: what the program left
   * behind may still read on after its end.
   */
  give(whole: Uint8Array): Promise<void> {
    this.#state = "ended"; // The descriptor is the socket's from here on.
    const socket = new Socket({ fd: this.#keptFd, readable: false, writable: true });
    socket.on("error", () => undefined); // A program may end, or close its input, without reading it (G12).
    return new Promise((resolve) => {
      socket.once("close", () => resolve());
      socket.end(whole);
    });
  }

  /** The program is over: nothing more is written. */
  close(): void {
    if (this.#state === "open") this.#shut("closed");
  }

  async #write({ offset, data, end }: Input, turn: InputTurn): Promise<InputTaken> {
    if (offset > this.#position) throw leavesHole(offset, this.#position);
    const fresh = data.subarray(this.#position - offset);
    if (this.#state === "closed") return this.#taken();
    if (this.#state === "ended" && fresh.length > 0) throw misplaced("data", "comes after the end of the input");
    if (end && offset + data.length < this.#position)
      throw misplaced("end", `lies before ${this.#position}, up to where input was taken`);
    for (let at = 0; at < fresh.length && this.#state === "open"; at += pieceBytes) {
      const piece = fresh.subarray(at, at + pieceBytes);
      turn.signal.throwIfAborted();
      await turn.effect(() => this.#writePiece(piece, turn.signal));
    }
    if (end && this.#state === "open") await turn.effect(async () => this.#shut("ended"));
    return this.#taken();
  }

  #taken(): InputTaken {
    return { nextOffset: this.#position, closed: this.#state === "closed" };
  }

  /** Writes it, finds the program closed, or rejects as the signal: then nothing of it was written. */
  #writePiece(piece: Uint8Array, signal: AbortSignal): Promise<void> {
    const socket = this.#open();
    if (socket === undefined) return Promise.resolve();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const takeBack = (): void => {
      if (socket.writableLength === 0) return; // The kernel has it; its callback is on the way.
      this.#socket = undefined;
      socket.destroy();
      reject(signal.reason);
    };
    signal.addEventListener("abort", takeBack, { once: true });
    socket.write(piece, (error) => {
      signal.removeEventListener("abort", takeBack);
      if (!error) this.#position += piece.length;
      // Whatever else a pipe may say, nothing more goes through it. One that was taken back has rejected already.
      else if (this.#socket === socket && this.#state === "open") this.#shut("closed");
      resolve();
    });
    return promise;
  }

  /** The writer, made anew after a write was taken back. Undefined: nobody reads any more. */
  #open(): Socket | undefined {
    if (this.#socket !== undefined) return this.#socket;
    try {
      const fd = openSync(`/proc/self/fd/${this.#keptFd}`, constants.O_WRONLY | constants.O_NONBLOCK);
      this.#socket = new Socket({ fd, readable: false, writable: true });
      this.#socket.on("error", () => undefined); // Told to the write that meets it.
      return this.#socket;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENXIO")) throw noDescriptor(error);
      this.#shut("closed");
      return undefined;
    }
  }

  #shut(state: "ended" | "closed"): void {
    this.#state = state;
    this.#socket?.destroy();
    closeSync(this.#keptFd);
  }
}

function leavesHole(offset: number, expected: number): AnsweredError {
  return new AnsweredError(
    "OFFSET_OUT_OF_RANGE",
    `Nothing was written: the program's input stands at ${expected}, and ${offset} would leave a hole. Go on at ${expected}.`,
    { offset: String(offset), expected: String(expected) },
  );
}

function misplaced(field: string, why: string): AnsweredError {
  return new AnsweredError("INVALID_REQUEST", `Nothing was written: ${field} ${why}.`, { field });
}

function noDescriptor(error: unknown): AnsweredError {
  const why = error instanceof Error ? error.message : String(error);
  return new AnsweredError(
    "STREAM_CAPACITY",
    `Nothing was written: the guest has no descriptor left (${why}). Try again.`,
    {
      cause: why,
    },
  );
}
