import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { transitions } from "./transitions.ts";
import type { StateName } from "./workspace-state.ts";

const page = readFileSync(join(import.meta.dirname, "../../../../docs/design/lifecycle.md"), "utf8");

/** The rows of the page's transition table: fact, then where it leads from each state. */
function tableOfPage(): Record<string, Record<string, string[]>> {
  const lines = page.split("\n");
  const head = lines.findIndex((line) => line.startsWith("| fact |"));
  const states = cells(lines[head] ?? "").slice(1);
  const table: Record<string, Record<string, string[]>> = Object.fromEntries(states.map((state) => [state, {}]));
  for (const line of lines.slice(head + 2)) {
    if (!line.startsWith("|")) break;
    const [fact = "", ...targets] = cells(line);
    for (const [at, target] of targets.entries()) {
      const row = table[states[at] ?? ""];
      if (row && target !== "") row[fact] = target.split(", ");
    }
  }
  return table;
}

function cells(line: string): string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

describe("docs/design/lifecycle.md", () => {
  it("shows the table that the code has", () => {
    const { gone, ...rest } = transitions;
    expect(gone).toEqual({});
    const ofCode = Object.entries(rest).map(([state, row]) => [
      state as StateName,
      Object.fromEntries(Object.entries(row).map(([fact, to]) => [fact, typeof to === "string" ? [to] : to])),
    ]);
    expect(tableOfPage()).toEqual(Object.fromEntries(ofCode));
  });
});
