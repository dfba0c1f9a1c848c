import { randomUUID } from "node:crypto";
import { type Clock, Deadline, SerialQueue } from "@holdfast/async";
import { quiescedNamedMax, quiesceScanMs } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { ProcessScope } from "./process-scope.ts";
import type { Quiet } from "./quiet.ts";
import { type StoppedProcess, type StopReport, stopPrograms } from "./stop-programs.ts";

export interface QuiesceOrder {
  readonly graceMs: number;
  /** Keeps the guest quiet for so long after a success, or until it is released. */
  readonly holdMs: number | undefined;
  /** Told how to let the hold go; answers how to forget that. May throw: then there is no hold. */
  readonly onHold: (release: () => void) => () => void;
  /** Withdraws it. What was frozen goes on. */
  readonly signal: AbortSignal;
}

export interface QuiesceOutcome extends StopReport {
  readonly scope: ProcessScope["kind"];
  readonly holdId: string | undefined;
}

interface Hold {
  readonly id: string;
  readonly end: () => void;
}

/** What is left for scans at least, beside the grace, however long a start took to settle. */
const leastScanMs = 2_000;

/** Brings the guest to rest, one caller after the other, and keeps it there while a hold lasts. */
export class Quiesce {
  readonly #scope: ProcessScope;
  readonly #quiet: Quiet;
  readonly #clock: Clock;
  readonly #turns = new SerialQueue();
  #hold: Hold | undefined;

  constructor(scope: ProcessScope, quiet: Quiet, clock: Clock) {
    this.#scope = scope;
    this.#quiet = quiet;
    this.#clock = clock;
  }

  /** Resolves only when a scan found nothing any more. Rejects with QUIESCE_UNCONFIRMED, or as the signal. */
  run(order: QuiesceOrder): Promise<QuiesceOutcome> {
    return this.#turns.run(() => this.#run(order));
  }

  /** Lets a hold go: this one, or whichever. True when there was one. */
  release(holdId: string): boolean {
    const hold = this.#hold;
    if (hold === undefined || (holdId !== "" && holdId !== hold.id)) return false;
    this.#hold = undefined;
    hold.end();
    return true;
  }

  async #run(order: QuiesceOrder): Promise<QuiesceOutcome> {
    const { graceMs, holdMs, signal } = order;
    using within = new Deadline(this.#clock, quiesceScanMs, signal);
    const reopen = await this.#quiet.close(within.signal).catch((error) => {
      throw within.expired ? startHeld() : error;
    });
    let held = false;
    try {
      const withinMs = Math.max(within.remainingMs(), graceMs + leastScanMs);
      const report = await stopPrograms(this.#scope, graceMs, signal, withinMs).catch((error) => {
        throw signal.aborted ? signal.reason : unseen(error);
      });
      if (report.left.length > 0) throw unconfirmed(report);
      const holdId = holdMs === undefined ? undefined : this.#holdFor(holdMs, reopen, order.onHold);
      held = holdId !== undefined;
      return { ...report, scope: this.#scope.kind, holdId };
    } finally {
      if (!held) reopen();
    }
  }

  /** In place of a former hold. */
  #holdFor(holdMs: number, reopen: () => void, onHold: QuiesceOrder["onHold"]): string {
    const id = randomUUID();
    const forget = onHold(() => this.release(id));
    this.release("");
    const cancelLease = this.#clock.schedule(holdMs, () => this.release(id));
    this.#hold = {
      id,
      end: () => {
        cancelLease();
        forget();
        reopen();
      },
    };
    return id;
  }
}

/** Names of processes for people: pid, short name, last signal. */
export function named(processes: readonly StoppedProcess[]): string {
  return processes
    .slice(0, quiescedNamedMax)
    .map(({ pid, name, lastSignal }) => `${pid} (${name}, ${lastSignal})`)
    .join(", ");
}

function unconfirmed({ left, rounds }: StopReport): AnsweredError {
  const pids = left.slice(0, quiescedNamedMax).map(({ pid }) => pid);
  return new AnsweredError(
    "QUIESCE_UNCONFIRMED",
    `Not everything in the guest could be stopped: after ${rounds} scans ${left.length} processes are left: ${named(left)}. ` +
      "They go on, and may write.",
    { pids: pids.join(","), left: String(left.length), rounds: String(rounds) },
  );
}

function startHeld(): AnsweredError {
  return new AnsweredError(
    "QUIESCE_UNCONFIRMED",
    `A program is being started, and the kernel has not answered for ${quiesceScanMs / 1_000} s: it may begin at any time. Nothing was stopped.`,
    { pids: "", cause: "start-held" },
  );
}

function unseen(error: unknown): unknown {
  if (error instanceof AnsweredError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new AnsweredError(
    "QUIESCE_UNCONFIRMED",
    `The guest's processes could not be looked at (${why}), so it is not known what runs. What was frozen goes on.`,
    { pids: "", cause: why },
  );
}
