import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const root = dirname(import.meta.dirname);
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The ids at the beginning of a test's name. */
function idsIn(source: string): readonly string[] {
  const names = source.matchAll(/\b(?:it|describe)(?:\.each\([^"`]*\))?\(\s*["`]((?:[LGB]\d+a?[ ,:])+)/g);
  return [...names].flatMap(([, ids = ""]) => ids.match(/[LGB]\d+a?/g) ?? []);
}

describe("rule ids", () => {
  it("are all told on the page that lists them", () => {
    const tests = globSync(["packages/*/src/**/*.test.ts", "services/*/src/**/*.test.ts", "test/**/*.test.ts"], {
      cwd: root,
    });
    const used = new Set(tests.flatMap((path) => idsIn(read(path))));
    expect(used.size).toBeGreaterThan(60);
    const page = read("docs/design/rules.md");
    const told = new Set([...page.matchAll(/^\| ([LGB]\d+a?) \|/gm)].map(([, id]) => id ?? ""));
    const missing = [...used].filter((id) => !told.has(id) && !page.includes(`${id}:`));
    expect(missing).toEqual([]);
  });
});
