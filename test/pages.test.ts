import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

const root = dirname(import.meta.dirname);
const pages = globSync(["*.md", "docs/**/*.md", "{packages,services}/*/*.md"], { cwd: root });

it("links only to pages and folders that are there", () => {
  expect(pages.length).toBeGreaterThan(10);
  const broken = pages.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map((link) => link[1] ?? "")
      .filter((target) => !existsSync(join(root, dirname(page), target)))
      .map((target) => `${page} → ${target}`),
  );
  expect(broken).toEqual([]);
});

it("names in comments only design pages that are there", () => {
  const sources = globSync("{packages,services,test,tools}/**/*.{ts,mjs,sh,proto}", { cwd: root }).filter(
    (path) => !/node_modules|\/dist\/|\/gen\//.test(path),
  );
  const missing = sources.flatMap((path) =>
    [...readFileSync(join(root, path), "utf8").matchAll(/docs\/[a-z]+\/[a-z0-9-]+\.md/g)]
      .map((mention) => mention[0])
      .filter((page) => !existsSync(join(root, page)))
      .map((page) => `${path} → ${page}`),
  );
  expect([...new Set(missing)]).toEqual([]);
});
