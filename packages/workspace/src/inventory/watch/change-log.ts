import { changeLogMax } from "@holdfast/contract";
import type { Change } from "./change.ts";
import { isAfter } from "./resource-version.ts";

/** The latest changes, so that a watcher who comes back soon costs the cluster nothing. */
export class ChangeLog {
  /** Every change after this version is here. */
  #since: string;
  #changes: Change[] = [];
  readonly #max: number;

  constructor(since: string, max = changeLogMax) {
    this.#since = since;
    this.#max = max;
  }

  add(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length < 2 * this.#max) return;
    const dropped = this.#changes.splice(0, this.#max);
    this.#since = dropped.at(-1)?.version ?? this.#since;
  }

  /** What came after the version; undefined when that is no longer known. */
  after(version: string): readonly Change[] | undefined {
    if (isAfter(this.#since, version)) return undefined;
    const first = this.#changes.findIndex((change) => isAfter(change.version, version));
    return first < 0 ? [] : this.#changes.slice(first);
  }
}
