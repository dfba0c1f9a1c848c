import { randomBytes } from "node:crypto";
import type { Clock } from "@holdfast/async";
import {
  type ExecutionId,
  executionKeptMs,
  executionRecordsMax,
  executionRequestsMaxBytes,
  retainedExecutionKeptMs,
} from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { Quiet } from "../disk/quiet.ts";
import { argCostBytes, environmentBytesOf } from "./environment-bytes.ts";
import { Execution } from "./execution.ts";
import { InputBudget, type KeptInput } from "./input-budget.ts";
import { type LaunchNeeds, noRoom } from "./launch.ts";
import { LogBudget } from "./log-budget.ts";
import { directoryOf, type StartRoot } from "./start-directory.ts";
import type { StartWish } from "./start-wish.ts";
import type { Tombstones } from "./tombstones.ts";

export interface ExecutionTableOptions extends LaunchNeeds {
  readonly root: StartRoot;
  /** What every command finds in its environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** The ids that were used. */
  readonly tombstones: Tombstones;
  /** Of this agent process. */
  readonly bootId: string;
  /** Lets starts through, or not. */
  readonly quiet: Quiet;
  /** Room for the inputs of starts; all that a guest has, unless a test says less. */
  readonly inputs?: InputBudget;
}

const sweepMinMs = 1_000;

/** Names the environment entry by which a command's processes are known, wherever they went. */
const markerName = "HOLDFAST_EXECUTION";

/** The commands that this agent knows: at most one per id, ever. */
export class ExecutionTable {
  readonly #options: ExecutionTableOptions;
  readonly #records = new Map<ExecutionId, Execution>();
  /** Ended ones in the order in which they ended, with when they may go. */
  readonly #expiry = new Map<Execution, number>();
  readonly #budget = new LogBudget();
  readonly #inputs: InputBudget;
  readonly #tombstones: Tombstones;
  #requestBytes = 0;
  #sweepAtMs = Number.POSITIVE_INFINITY;
  #cancelSweep: () => void = () => undefined;

  constructor(options: ExecutionTableOptions) {
    this.#options = options;
    this.#tombstones = options.tombstones;
    this.#inputs = options.inputs ?? new InputBudget();
  }

  /**
   * Starts the command, or joins the one that has this id. Finding and inserting is one step: two starts of one id run one
   * process. Rejects with AnsweredError, or as `admit`, which is asked again in the step in which the program is begun; this call has
   * started nothing then.
   */
  async start(
    wish: StartWish,
    fromOffset: number,
    admit = (): void => undefined,
  ): Promise<{ readonly execution: Execution; readonly joined: boolean }> {
    const known = this.#records.get(wish.id);
    if (known !== undefined) {
      if (known.wish.hash !== wish.hash) throw otherRequest(wish.id);
      try {
        await known.started;
      } catch (error) {
        // That its starter may not start it any more says nothing of this caller, whose start it is then.
        if (!isHoldersRefusal(error) || this.#records.get(wish.id) === known) throw error;
        admit();
        return await this.start(wish, fromOffset, admit);
      }
      return { execution: known, joined: true };
    }
    this.#refuseIfBuried(wish);
    return this.#options.quiet.start(() => this.#startNew(wish, fromOffset, admit));
  }

  async #startNew(
    wish: StartWish,
    fromOffset: number,
    admit: () => void,
  ): Promise<{ readonly execution: Execution; readonly joined: false }> {
    if (fromOffset > 0) throw beyondEnd(wish.id, fromOffset, 0);
    const input = this.#inputs.keep(wish.id, wish.stdin);
    try {
      return await this.#startWith(input, wish, admit);
    } catch (error) {
      input.release();
      throw error;
    }
  }

  async #startWith(
    input: KeptInput,
    wish: StartWish,
    admit: () => void,
  ): Promise<{ readonly execution: Execution; readonly joined: false }> {
    const environmentBytes = environmentBytesOf(wish.env);
    this.#makeRoom(requestBytesOf(wish) + environmentBytes);
    const marker = `${wish.id}/${randomBytes(8).toString("hex")}`;
    const execution = new Execution(wish, `${markerName}=${marker}`, {
      ...this.#options,
      budget: this.#budget,
    });
    // In the step in which its id was looked for: a second start of it joins.
    this.#records.set(wish.id, execution);
    this.#requestBytes += requestBytesOf(wish) + environmentBytes;
    const environment = { ...this.#options.environment, ...wish.env, [markerName]: marker };
    try {
      await execution.start({ directory: this.#directoryFor(wish, admit), environment, admit }, input);
    } catch (error) {
      this.#records.delete(wish.id);
      this.#requestBytes -= requestBytesOf(wish);
      this.#tombstones.withdraw(wish.id);
      execution.log.dispose();
      throw error;
    } finally {
      this.#requestBytes -= environmentBytes; // Let go once the program has it.
    }
    void execution.ended.then(() => this.#hasEnded(execution));
    return { execution, joined: false };
  }

  /**
   * Where a command is to be started, once; with its id kept. Apart from what lasts as long as the command: a function there that named its
   * wish would keep its input for as long.
   */
  #directoryFor({ id, hash, cwd, command }: StartWish, admit: () => void): () => Promise<string> {
    const { root, looks } = this.#options;
    return async () => {
      const directory = await directoryOf(cwd, root, looks, (cause, why) => noRoom(command, cause, why));
      admit(); // Another holder may have come during that look.
      // Before the spawn: an agent process that comes after this one must not run it again (G6).
      this.#tombstones.begin(id, hash);
      return directory;
    };
  }

  /** The command of this id. Throws EXECUTION_NOT_FOUND, or EXECUTION_LOST when a former agent process had it. */
  require(id: ExecutionId): Execution {
    const execution = this.#records.get(id);
    if (execution !== undefined) return execution;
    const stone = this.#tombstones.get(id);
    if (stone !== undefined && stone.bootId !== this.#options.bootId) throw lost(id, stone.bootId);
    const message =
      stone !== undefined
        ? `Nothing was done: execution ${id} ended, and its record has expired.`
        : `Nothing was done: this guest knows no execution ${id}. ListExecutions tells which it knows.`;
    throw new AnsweredError("EXECUTION_NOT_FOUND", message, { execution_id: id });
  }

  /** All whose record is kept. */
  get all(): readonly Execution[] {
    return [...this.#records.values()];
  }

  get running(): readonly Execution[] {
    return [...this.#records.values()].filter((execution) => execution.state.t !== "ended");
  }

  get unconfirmed(): readonly Execution[] {
    return [...this.#records.values()].filter((execution) => execution.state.t === "unconfirmed");
  }

  #refuseIfBuried(wish: StartWish): void {
    const stone = this.#tombstones.get(wish.id);
    if (stone === undefined) return;
    if (stone.hash !== wish.hash) throw otherRequest(wish.id);
    if (stone.bootId !== this.#options.bootId) throw lost(wish.id, stone.bootId);
    throw new AnsweredError(
      "EXECUTION_NOT_FOUND",
      `Execution ${wish.id} ran and ended, and its record has expired. It was not run again; use another id for another run.`,
      { execution_id: wish.id },
    );
  }

  #hasEnded(execution: Execution): void {
    this.#budget.ended(execution.log);
    this.#tombstones.end(execution.wish.id);
    const at = this.#options.clock.monotonicMs() + keptMsOf(execution);
    this.#expiry.set(execution, at);
    if (at < this.#sweepAtMs) this.#sweepAt(at);
  }

  /** One timer for all, at the earliest of them, and none while nothing is to expire. */
  #sweepAt(atMs: number): void {
    const { clock } = this.#options;
    this.#cancelSweep();
    this.#sweepAtMs = atMs;
    this.#cancelSweep = clock.schedule(Math.max(sweepMinMs, atMs - clock.monotonicMs()), () => {
      this.#sweepAtMs = Number.POSITIVE_INFINITY;
      this.#sweep(clock.monotonicMs());
      if (this.#expiry.size > 0) this.#sweepAt(Math.min(...this.#expiry.values()));
    });
  }

  #sweep(now: number): void {
    for (const [execution, at] of this.#expiry) {
      if (at > now) continue;
      // Somebody still reads it: it stays for another while.
      if (execution.isFollowed) this.#expiry.set(execution, now + keptMsOf(execution));
      else this.#bury(execution);
    }
  }

  /** For one more record, which will keep so many bytes of its request. */
  #makeRoom(bytes: number): void {
    for (;;) {
      const isFull = this.#records.size >= executionRecordsMax;
      if (!isFull && this.#requestBytes + bytes <= executionRequestsMaxBytes) return;
      const idle = [...this.#expiry.keys()].filter((execution) => !execution.isFollowed);
      const leaving = idle.find((execution) => !execution.wish.retainOutput) ?? idle[0];
      if (leaving === undefined) throw isFull ? tooMany() : tooLong();
      this.#bury(leaving);
    }
  }

  #bury(execution: Execution): void {
    this.#expiry.delete(execution);
    this.#records.delete(execution.wish.id);
    this.#requestBytes -= requestBytesOf(execution.wish);
    execution.log.dispose();
  }
}

/** A start was not begun for its caller's epoch. */
function isHoldersRefusal(error: unknown): boolean {
  return error instanceof AnsweredError && error.reason.startsWith("HOLDER_EPOCH_");
}

/** What a record keeps of its request. */
function requestBytesOf({ command, args }: StartWish): number {
  return args.reduce((sum, arg) => sum + Buffer.byteLength(arg) + argCostBytes, Buffer.byteLength(command));
}

function tooMany(): AnsweredError {
  return new AnsweredError(
    "EXECUTION_CAPACITY",
    `Nothing was started: the guest already has ${executionRecordsMax} executions (executionRecordsMax). End some.`,
    { limit: String(executionRecordsMax), setting: "executionRecordsMax" },
  );
}

function tooLong(): AnsweredError {
  return new AnsweredError(
    "EXECUTION_CAPACITY",
    `Nothing was started: the arguments of what runs, and the environments of what is being started, already take the ` +
      `${executionRequestsMaxBytes} bytes that there are for them (executionRequestsMaxBytes). End some, or pass long ones as input or files.`,
    { limit: String(executionRequestsMaxBytes), setting: "executionRequestsMaxBytes" },
  );
}

function keptMsOf(execution: Execution): number {
  return execution.wish.retainOutput ? retainedExecutionKeptMs : executionKeptMs;
}

function lost(id: ExecutionId, bootId: string): AnsweredError {
  return new AnsweredError(
    "EXECUTION_LOST",
    `Execution ${id} was started by a former process of the guest's agent, which is gone, and what became of it is not known. It was ` +
      "not run again: look at what it left, and use another id for another run.",
    { execution_id: id, boot_id: bootId },
  );
}

function otherRequest(id: ExecutionId): AnsweredError {
  return new AnsweredError(
    "EXECUTION_EXISTS",
    `Nothing was started: execution ${id} exists with another command, arguments, directory, environment, input or timeout.`,
    { execution_id: id },
  );
}

/** A reader asked for bytes that have not been written. */
export function beyondEnd(id: ExecutionId, fromOffset: number, end: number): AnsweredError {
  return new AnsweredError(
    "OFFSET_OUT_OF_RANGE",
    `Execution ${id} has written ${end} bytes; offset ${fromOffset} lies beyond.`,
    { execution_id: id, from_offset: String(fromOffset), end: String(end) },
  );
}
