import { readdirSync } from "node:fs";
import { lastPid } from "./pid-laps.ts";
import { type Process, readEnvironment, readProcess } from "./processes.ts";

/** How the names of all environment entries begin by which the agent knows its programs. */
const markerPrefix = "HOLDFAST_";

/**
 * The machine's processes, as one synchronous look sees them: each is read when it is first asked for, and only once. Every question throws where its
 * answer cannot be known, as without free descriptors.
 */
export class ProcessView {
  readonly #processes = new Map<number, Process | undefined>();
  readonly #markers = new Map<number, readonly string[]>();
  #pids: readonly number[] | undefined;
  #lastPid: number | undefined;

  /** Of everything there is. */
  get pids(): readonly number[] {
    this.#pids ??= readdirSync("/proc").map(Number).filter(Number.isInteger);
    return this.#pids;
  }

  /** The pid that was given out last. */
  get lastPid(): number {
    this.#lastPid ??= lastPid();
    return this.#lastPid;
  }

  /** Undefined when there is no such process. */
  process(pid: number): Process | undefined {
    const known = this.#processes.get(pid);
    if (known !== undefined || this.#processes.has(pid)) return known;
    const read = readProcess(pid);
    this.#processes.set(pid, read);
    return read;
  }

  /** True when it carries this `NAME=value`, of a NAME that begins with HOLDFAST_, in the environment that it was given. */
  hasMarker(pid: number, marker: string): boolean {
    let markers = this.#markers.get(pid);
    if (markers === undefined) {
      markers = markersIn(readEnvironment(pid) ?? "");
      this.#markers.set(pid, markers);
    }
    return markers.includes(marker);
  }
}

function markersIn(environment: string): readonly string[] {
  if (!environment.includes(markerPrefix)) return [];
  return environment.split("\0").filter((entry) => entry.startsWith(markerPrefix));
}
