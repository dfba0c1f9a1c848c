import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const root = dirname(import.meta.dirname);
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const page = read("docs/design/rules.md");

/** The ids in what begins a test's name, or a row of a table of tests. */
function idsIn(source: string): readonly string[] {
  const names = source.matchAll(
    /(?:\b(?:it|describe)(?:\.\w+)*(?:\([^"`]*\))?\(|^\s*\[|^)\s*["`]((?:[LGB]\d+a?[ ,:])+)/gm,
  );
  return [...names].flatMap(([, ids = ""]) => ids.match(/[LGB]\d+a?/g) ?? []);
}

const tests = globSync(["packages/*/src/**/*.test.ts", "services/*/src/**/*.test.ts", "test/**/*.test.ts"], {
  cwd: root,
});
const used = new Set(tests.flatMap((path) => idsIn(read(path))));
const rows = [...page.matchAll(/^\| ([LGB]\d+a?) \|(.*)\|$/gm)].map(([, id = "", rest = ""]) => ({ id, rest }));

describe("rule ids", () => {
  it("are all told on the page that lists them", () => {
    expect(used.size).toBeGreaterThan(60);
    const told = new Set(rows.map(({ id }) => id));
    const missing = [...used].filter((id) => !told.has(id) && !page.includes(`${id}:`));
    expect(missing).toEqual([]);
  });

  it("of faults met elsewhere are each carried by a test, but for those that the page says come later", () => {
    const faults = rows.filter(({ id }) => id.startsWith("B"));
    expect(faults.length).toBe(48);
    const later = faults.filter(({ rest }) => /\| later: [^|]+$/.test(rest)).map(({ id }) => id);
    expect(later).toEqual(["B88"]);
    const without = faults.map(({ id }) => id).filter((id) => !used.has(id));
    expect(without).toEqual(later);
  });
});
