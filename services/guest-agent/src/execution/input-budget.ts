import { type ExecutionId, executionInputsMaxBytes } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";

/** The whole input of a command, kept until its program has it. */
export interface KeptInput {
  readonly bytes: Uint8Array;
  /** It is kept no more. Only the first call counts. */
  release(): void;
}

/** What an input may hold on to beside itself before it is copied: Buffer's pool. */
const besideMaxBytes = 8 * 1024;
/** Executions that a refusal names. */
const namedMax = 8;

/** Keeps all inputs of a guest that their programs have not had yet together below a bound. */
export class InputBudget {
  readonly #maxBytes: number;
  readonly #kept = new Map<KeptInput, ExecutionId>();
  #bytes = 0;

  constructor(maxBytes = executionInputsMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps the input of a start. Throws EXECUTION_CAPACITY where there is no room for it: nothing of it is kept then. */
  keep(id: ExecutionId, input: Uint8Array): KeptInput {
    const { length } = input;
    if (this.#bytes + length > this.#maxBytes) throw this.#full(length);
    const kept: KeptInput = {
      bytes: alone(input),
      release: () => {
        if (this.#kept.delete(kept)) this.#bytes -= length;
      },
    };
    this.#bytes += length;
    this.#kept.set(kept, id);
    return kept;
  }

  #full(bytes: number): AnsweredError {
    const holders = [...this.#kept].sort(([a], [b]) => b.bytes.length - a.bytes.length).map(([, id]) => id);
    const named = holders.slice(0, namedMax).join(",");
    return new AnsweredError(
      "EXECUTION_CAPACITY",
      `Nothing was started: its ${bytes} bytes of input do not fit beside the ${this.#bytes} that other programs have not read yet, of the ` +
        `${this.#maxBytes} that there are for them (executionInputsMaxBytes). Try again when those have read theirs, or end one (${named}); or ` +
        "stream the input, or pass a file.",
      {
        limit: String(this.#maxBytes),
        setting: "executionInputsMaxBytes",
        kept: String(this.#bytes),
        executions: named,
      },
    );
  }
}

/** An input is part of its request's bytes, which would be kept with it, uncounted. */
function alone(input: Uint8Array): Uint8Array {
  const isPart = input.buffer.byteLength - input.length > besideMaxBytes;
  return isPart ? Uint8Array.prototype.slice.call(input) : input;
}
