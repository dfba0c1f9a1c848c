/** How often each thing of a group happened. */
export type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Counts what sequences were made of, so that a check that never met something is seen. */
export class Tally {
  readonly #counts = new Map<string, Map<string, number>>();
  #watched: { readonly id: string; readonly met: () => number }[] = [];

  count(group: string, what: string, by = 1): void {
    const counts = this.#counts.get(group) ?? new Map<string, number>();
    counts.set(what, (counts.get(what) ?? 0) + by);
    this.#counts.set(group, counts);
  }

  /** Counts, when the sequence is over, how often a rule was met. */
  watch(id: string, met: () => number): void {
    this.#watched.push({ id, met });
  }

  takeMet(): void {
    for (const { id, met } of this.#watched) this.count("fault", id, met());
    this.#watched = [];
  }

  of(group: string): ReadonlyMap<string, number> {
    return this.#counts.get(group) ?? new Map();
  }

  counts(): Counts {
    return Object.fromEntries([...this.#counts].map(([group, counts]) => [group, Object.fromEntries(counts)]));
  }

  add(counts: Counts): void {
    for (const [group, of] of Object.entries(counts)) {
      for (const [what, times] of Object.entries(of)) this.count(group, what, times);
    }
  }

  /** A line for each thing of these groups. */
  lists(groups: readonly string[]): string {
    return [...this.#counts]
      .filter(([group]) => groups.includes(group))
      .map(([group, counts]) => {
        const lines = [...counts]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([what, times]) => `  ${what.padEnd(44)} ${times}`);
        return `${group}\n${lines.join("\n")}`;
      })
      .join("\n");
  }
}
