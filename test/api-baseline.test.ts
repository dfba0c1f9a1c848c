import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

const root = dirname(import.meta.dirname);

it("keeps the API's baseline image as the last decision says", () => {
  const digest = createHash("sha256")
    .update(readFileSync(join(root, "proto/baseline.binpb")))
    .digest("hex");
  const decision = readFileSync(join(root, "docs/decisions/0003-api-baseline.md"), "utf8");
  const rows = [...decision.matchAll(/^\| `([0-9a-f]{64})` \|/gm)].map((row) => row[1]);
  expect(rows.at(-1)).toBe(digest);
});
