// Writes docs/api from the protos and the error catalogue: `generate-docs.ts [FOLDER]`, by default docs/api.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorsPage } from "./errors-page.ts";
import { indexPage } from "./index-page.ts";
import { protoPage } from "./proto-page.ts";
import { publicFiles } from "./public-files.ts";

const root = join(import.meta.dirname, "../..");
const folder = process.argv[2] ?? join(root, "docs/api");
const files = publicFiles(root);
const pages = new Map([
  ["README.md", indexPage(files)],
  ["errors.md", errorsPage(files)],
  ...files.map((file) => [`${file.name.split("/").at(-1)}.md`, protoPage(file)] as const),
]);

mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) if (!pages.has(name)) rmSync(join(folder, name));
for (const [name, text] of pages) writeFileSync(join(folder, name), text);
