import type { ExecutionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { AttachWish, ExecutionWish } from "@holdfast/workspace";
import type { PresentedEvent } from "./present-execution.ts";

/** How far a command has been delivered on one call: what a caller needs to go on elsewhere. */
export class ExecutionProgress {
  readonly #executionId: ExecutionId;
  readonly #onDisconnect: ExecutionWish["onDisconnect"];
  #started = false;
  #nextOffset = 0n;

  constructor({ executionId, onDisconnect }: ExecutionWish) {
    this.#executionId = executionId;
    this.#onDisconnect = onDisconnect;
  }

  /** The guest has said that the command runs, or ran. */
  started(): void {
    this.#started = true;
  }

  /** Takes note of a response that has been taken over by the listener, never of one that may still be let go. */
  delivered({ event }: PresentedEvent): void {
    if (event.case === "started") this.started();
    else if (event.case === "output") this.#nextOffset = event.value.offset + BigInt(event.value.data.byteLength);
    else if (event.case === "gap") this.#nextOffset = event.value.to;
  }

  /** What the call ends with when the service drains: the command is neither ended nor forgotten. */
  detachedByDrain(): HoldfastError {
    const what = this.#started ? "The command goes on in its workspace" : "The command may have been started";
    const then =
      this.#onDisconnect === "cancel"
        ? "; being bound to its client, it is ended after a minute without one"
        : this.#started
          ? `; attach to it by its id, from offset ${this.#nextOffset}`
          : "; start it again under the same id: it joins the command, never runs it twice";
    return new HoldfastError("EXECUTION_DETACHED", {
      message: `This process is stopping and let the call go at offset ${this.#nextOffset}. ${what} as execution ${this.#executionId}${then}.`,
      metadata: {
        execution_id: this.#executionId,
        next_offset: String(this.#nextOffset),
        why: "service_draining",
      },
    });
  }
}

/** How far a command has been delivered to one that only follows it. */
export class FollowerProgress {
  readonly #executionId: ExecutionId;
  #nextOffset: bigint;

  constructor({ executionId, fromOffset }: AttachWish) {
    this.#executionId = executionId;
    this.#nextOffset = BigInt(fromOffset);
  }

  /** As of ExecutionProgress. */
  delivered({ event }: PresentedEvent): void {
    if (event.case === "output") this.#nextOffset = event.value.offset + BigInt(event.value.data.byteLength);
    else if (event.case === "gap") this.#nextOffset = event.value.to;
  }

  /** What the call ends with when the service drains. */
  detachedByDrain(): HoldfastError {
    return new HoldfastError("EXECUTION_DETACHED", {
      message: `This process is stopping and let the call go at offset ${this.#nextOffset}. Execution ${this.#executionId} goes on. Attach to it again from there; another process, or this one when it is back, will serve it.`,
      metadata: {
        execution_id: this.#executionId,
        next_offset: String(this.#nextOffset),
        why: "service_draining",
      },
      onAttach: true,
    });
  }
}
