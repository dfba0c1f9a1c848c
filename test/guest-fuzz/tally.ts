import { frameTypes } from "../../packages/guest-link/src/frame.ts";
import type { FuzzCase } from "./fuzz-case.ts";
import { methods, nameOf } from "./methods.ts";

const frameNames = new Map<number, string>(Object.entries(frameTypes).map(([name, type]) => [type, name]));

/** What a run has done, by method and by type of frame, both ways. */
export class Tally {
  /** Generated ones; those of the corpus are kept for another reason. */
  cases = 0;
  /** Proved, and at least one whole request of a method was sent. */
  reaching = 0;
  answers = 0;
  /** Forced ends that the agent told on a control connection. */
  toldForced = 0;
  closedByAgent = 0;
  refusedAtDoor = 0;
  lastQuiesceAtMs = Number.NEGATIVE_INFINITY;
  readonly methods = new Map<string, number>(methods.map((method) => [nameOf(method), 0]));
  readonly frames = new Map<string, number>([...frameNames.values()].map((name) => [name, 0]));
  readonly reasons = new Map<string, number>();

  played({ kind, methods, types, role }: FuzzCase): void {
    if (!kind.startsWith("corpus:")) this.cases += 1;
    if (role !== "unproved" && methods.some((name) => this.methods.has(name))) this.reaching += 1;
    for (const name of methods) {
      if (this.methods.has(name)) count(this.methods, name);
      if (name.endsWith("/Quiesce")) this.lastQuiesceAtMs = performance.now();
    }
    for (const type of types) this.sawFrame(type);
  }

  sawFrame(type: number): void {
    const name = frameNames.get(type);
    if (name !== undefined) count(this.frames, name);
  }

  answered(reason: string): void {
    this.answers += 1;
    count(this.reasons, reason === "" ? "ok" : reason);
  }

  get reachingShare(): number {
    return this.cases === 0 ? 0 : this.reaching / this.cases;
  }

  /** Methods and types of frames of which nothing was sent or seen. */
  get missing(): readonly string[] {
    return [...this.methods, ...this.frames].filter(([, times]) => times === 0).map(([name]) => name);
  }

  lines(): readonly string[] {
    const table = (counts: ReadonlyMap<string, number>): string[] =>
      [...counts].map(([name, times]) => `  ${String(times).padStart(8)}  ${name}`);
    return [
      "methods (requests sent whole):",
      ...table(this.methods),
      "frames (both ways):",
      ...table(this.frames),
      "answers:",
      ...table(new Map([...this.reasons].sort(([, a], [, b]) => b - a))),
      `${this.cases} cases, ${(this.reachingShare * 100).toFixed(1)} % proved and reaching a method, ${this.answers} answers, ${this.toldForced} forced ends told, ` +
        `${this.closedByAgent} connections closed by the agent, ${this.refusedAtDoor} not welcomed`,
    ];
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
