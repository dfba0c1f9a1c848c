import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as contract from "@holdfast/contract";
import { describe, expect, it } from "vitest";

const root = dirname(import.meta.dirname);
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const constants: Readonly<Record<string, unknown>> = contract;

/** How a page may write a constant's value. */
function writtenAs(name: string, value: number): readonly string[] {
  const inUnit = (unit: string, size: number): string => `${(value / size).toLocaleString("en")} ${unit}`;
  if (name.endsWith("Ms")) return [inUnit("ms", 1), inUnit("s", 1e3), inUnit("min", 6e4), inUnit("h", 3.6e6)];
  if (name.endsWith("Bytes")) return [inUnit("KiB", 1024), inUnit("MiB", 1024 ** 2)];
  return [value.toLocaleString("en")];
}

describe("one number, one place: the guest's pages agree with the contract", () => {
  it.each(["docs/design/guest-link.md", "services/guest-agent/README.md"])(
    "%s, in every row that names a constant",
    (page) => {
      const rows = read(page)
        .split("\n")
        .filter((line) => line.startsWith("|"));
      const named = rows.flatMap((row) =>
        [...row.matchAll(/`([a-z]+[A-Z][A-Za-z]*(?:Max|Ms|Bytes|Misses))`/g)].map((match) => ({
          row,
          name: match[1] ?? "",
        })),
      );
      expect(named.length).toBeGreaterThan(10);
      for (const { row, name } of named) {
        const value = constants[name];
        expect(typeof value, `${name} of ${page}`).toBe("number");
        expect(
          writtenAs(name, Number(value)).some((text) => row.includes(text)),
          `${name} = ${value} in: ${row}`,
        ).toBe(true);
      }
    },
  );

  it("names every constant of the guest's limits in the agent's README", () => {
    const exported = [...read("packages/contract/src/guest-limits.ts").matchAll(/export const (\w+)/g)].map(
      (match) => match[1] ?? "",
    );
    const servicesOwn = ["cancelAskAgainMs"];
    const readme = read("services/guest-agent/README.md");
    expect(exported.filter((name) => !readme.includes(`\`${name}\``) && !servicesOwn.includes(name))).toEqual([]);
  });

  it("names only reasons of the catalogue in the guest's protos", () => {
    const texts = globSync("proto/holdfast/guest/v1/*.proto", { cwd: root }).map(read);
    const mentioned = texts.flatMap((text) =>
      [...text.matchAll(/\/\/ Reasons:((?:.*\n *\/\/)*.*)\n/g)].flatMap(
        (match) => match[1]?.match(/\b[A-Z][A-Z]+(?:_[A-Z]+)+\b/g) ?? [],
      ),
    );
    expect(mentioned.length).toBeGreaterThan(10);
    expect([...new Set(mentioned)].filter((reason) => !(reason in contract.reasons))).toEqual([]);
  });
});
