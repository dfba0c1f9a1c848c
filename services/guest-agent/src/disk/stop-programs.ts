import { setTimeout as delay } from "node:timers/promises";
import { quiesceScanMs } from "@holdfast/contract";
import { isGone, type Process, readProcess, send, signalProcess } from "../execution/processes.ts";
import type { ProcessScope } from "./process-scope.ts";

export interface StoppedProcess {
  readonly pid: number;
  readonly name: string;
  /** Empty when none could be sent. */
  readonly lastSignal: NodeJS.Signals | "";
}

/** What a quiesce came to. `left` is empty, or it was none. */
export interface StopReport {
  readonly rounds: number;
  readonly stopped: readonly StoppedProcess[];
  /** Of another user: no signal may be sent to them. */
  readonly notReached: readonly StoppedProcess[];
  readonly left: readonly StoppedProcess[];
}

const roundsMax = 8;
/** Scans of one freeze. A process that has been sent SIGSTOP cannot fork any more, so few are needed. */
const sweepsMax = 64;
/** How long a killed process may take to go before the next round looks again. */
const killedGoneMs = 2_000;
const lookFirstMs = 2;
const lookMaxMs = 40;

/**
 * Stops all that the scope finds, in rounds, until a scan finds nothing (G23). A round freezes first, so that nothing outruns the
 * scan, then SIGTERM and SIGCONT, the grace, SIGKILL. Nothing stays frozen, however this ends. Rejects as the signal, or when
 * processes cannot be looked at.
 */
export async function stopPrograms(
  scope: ProcessScope,
  graceMs: number,
  signal: AbortSignal,
  withinMs = quiesceScanMs,
): Promise<StopReport> {
  const run = new StopRun(scope, performance.now() + withinMs);
  try {
    for (let round = 1; ; round += 1) {
      const frozen = run.freeze();
      if (frozen.length === 0 || round > roundsMax || run.leftMs() <= 0) return run.report(round, frozen);
      run.sendAll(frozen, "SIGTERM");
      run.sendAll(frozen, "SIGCONT");
      const stubborn = await run.untilGone(frozen, graceMs, signal);
      signal.throwIfAborted();
      run.sendAll(stubborn, "SIGKILL");
      await run.untilGone(stubborn, killedGoneMs, signal);
      signal.throwIfAborted();
    }
  } finally {
    run.thaw();
  }
}

class StopRun {
  readonly #scope: ProcessScope;
  readonly #endsAtMs: number;
  readonly #stopped = new Map<string, StoppedProcess>();
  readonly #denied = new Map<string, Process>();
  readonly #frozen = new Map<string, Process>();

  constructor(scope: ProcessScope, endsAtMs: number) {
    this.#scope = scope;
    this.#endsAtMs = endsAtMs;
  }

  leftMs(): number {
    return this.#endsAtMs - performance.now();
  }

  /** Stops all that is there where it stands. */
  freeze(): readonly Process[] {
    const frozen = new Map<string, Process>();
    for (let sweep = 0; sweep < sweepsMax; sweep += 1) {
      const fresh = this.#reachable().filter((found) => !frozen.has(keyOf(found)));
      if (fresh.length === 0) break;
      for (const found of fresh) {
        const sent = signalProcess(found, "SIGSTOP");
        if (sent === "denied") this.#denied.set(keyOf(found), found);
        if (sent !== "sent") continue;
        frozen.set(keyOf(found), found);
        this.#frozen.set(keyOf(found), found);
      }
    }
    return [...frozen.values()];
  }

  sendAll(targets: readonly Process[], signal: "SIGTERM" | "SIGCONT" | "SIGKILL"): void {
    for (const target of targets) {
      const sent = signalProcess(target, signal);
      if (signal === "SIGCONT") this.#frozen.delete(keyOf(target));
      else if (sent === "sent") {
        this.#stopped.set(keyOf(target), { pid: target.pid, name: target.name, lastSignal: signal });
      }
    }
  }

  /** Looks until they are gone or the time is over. Returns those that are not. */
  async untilGone(targets: readonly Process[], forMs: number, signal: AbortSignal): Promise<readonly Process[]> {
    const endsAtMs = Math.min(performance.now() + forMs, this.#endsAtMs);
    let left = targets;
    for (let waitMs = lookFirstMs; ; waitMs = Math.min(lookMaxMs, waitMs * 2)) {
      left = left.filter(lives);
      const restMs = endsAtMs - performance.now();
      if (left.length === 0 || restMs <= 0 || signal.aborted) return left;
      await delay(Math.min(waitMs, restMs));
    }
  }

  /** Lets go on whatever is still frozen. */
  thaw(): void {
    for (const found of this.#frozen.values()) thaw(found);
    this.#frozen.clear();
  }

  report(rounds: number, left: readonly Process[]): StopReport {
    const leftKeys = new Set(left.map(keyOf));
    const stopped = [...this.#stopped].filter(([key]) => !leftKeys.has(key)).map(([, process]) => process);
    return {
      rounds,
      stopped,
      notReached: [...this.#denied.values()].filter(lives).map(({ pid, name }) => ({ pid, name, lastSignal: "" })),
      left: left.map(
        (found) => this.#stopped.get(keyOf(found)) ?? { pid: found.pid, name: found.name, lastSignal: "SIGSTOP" },
      ),
    };
  }

  #reachable(): readonly Process[] {
    return this.#scope.members().filter((found) => !this.#denied.has(keyOf(found)));
  }
}

const keyOf = ({ pid, startTicks }: Process): string => `${pid}/${startTicks}`;

/** Also where it cannot be looked at, as without free descriptors: nobody but a SIGKILL can have ended what is frozen. */
function thaw(frozen: Process): void {
  try {
    signalProcess(frozen, "SIGCONT");
  } catch {
    send(frozen.pid, "SIGCONT");
  }
}

function lives(seen: Process): boolean {
  const now = readProcess(seen.pid);
  return now !== undefined && !isGone(now) && now.startTicks === seen.startTicks;
}
