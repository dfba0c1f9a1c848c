// Fails when the committed generated code or API reference is not what the protos and the catalogue generate.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

const root = dirname(import.meta.dirname);
const scratch = mkdtempSync(join(tmpdir(), "holdfast-generated-"));
try {
  run(join(root, "node_modules/.bin/buf"), ["generate", root, "--template", join(root, "buf.gen.yaml"), "-o", scratch]);
  run(process.execPath, [join(root, "tools/docs/generate-docs.ts"), join(scratch, "docs/api")]);
  const stale = ["packages/api/src/gen", "docs/api"].flatMap(staleIn);
  if (stale.length > 0) {
    console.error(`holdfast: generated files are not current (run \`npm run generate\`):\n  ${stale.join("\n  ")}`);
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true });
}

function staleIn(folder: string): string[] {
  const files = new Set([...filesOf(join(root, folder)), ...filesOf(join(scratch, folder))]);
  return [...files]
    .map((file) => join(folder, file))
    .filter((file) => textOf(join(root, file)) !== textOf(join(scratch, file)));
}

function run(program: string, argv: readonly string[]): void {
  execFileSync(program, argv, { stdio: "inherit" });
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
