/** One line of a benchmark's table: a figure, and the one that was measured side by side with it. */
export interface Row {
  readonly work: string;
  readonly unit: string;
  readonly ours: number;
  readonly against: string;
  readonly theirs: number;
  /** What the ratio should be, in words. */
  readonly target: string;
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
}

export function spreadOf(samples: readonly number[]): Spread {
  const sorted = [...samples].sort((one, other) => one - other);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

export function tableOf(rows: readonly Row[]): string {
  const cells = rows.map(({ work, unit, ours, against, theirs, target }) => [
    work,
    `${ours.toFixed(2)} ${unit}`,
    `${theirs.toFixed(2)} ${unit}`,
    against,
    `${(ours / theirs).toFixed(2)} ×`,
    target,
  ]);
  const all = [["work", "here", "against", "", "ratio", "target"], ...cells];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0))) ?? [];
  return all
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
