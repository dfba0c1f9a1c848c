// Fails when the committed generated code is not what the protos generate.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

const root = dirname(import.meta.dirname);
const committed = join(root, "packages/api/src/gen");
const scratch = mkdtempSync(join(tmpdir(), "holdfast-generated-"));
try {
  execFileSync(
    join(root, "node_modules/.bin/buf"),
    ["generate", root, "--template", join(root, "buf.gen.yaml"), "-o", scratch],
    {
      stdio: "inherit",
    },
  );
  const fresh = join(scratch, "packages/api/src/gen");
  const files = new Set([...filesOf(committed), ...filesOf(fresh)]);
  const stale = [...files].filter((file) => textOf(join(committed, file)) !== textOf(join(fresh, file)));
  if (stale.length > 0) {
    console.error(`holdfast: generated code is not current (run \`npm run generate\`):\n  ${stale.join("\n  ")}`);
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true });
}

function filesOf(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)));
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
