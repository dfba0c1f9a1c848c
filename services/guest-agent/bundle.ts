import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));

export interface GuestAgentBundle {
  /** Everything that a pod needs of the agent, beside Node. */
  readonly directory: string;
  /** The file in it to run. `ready.mjs` beside it asks whether the agent serves. */
  readonly entry: string;
}

/**
 * Bundles the agent into one directory. Safe while others do the same, or run what is there: files are replaced whole, and only
 * when their content differs.
 */
export async function bundleGuestAgent(directory = join(here, "dist")): Promise<GuestAgentBundle> {
  const result = await build({
    // The agent last: it finds the other there.
    entryPoints: { "start-thread": join(here, "src/spawn/start-thread.ts"), main: join(here, "src/main.ts") },
    outdir: directory,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "none",
    write: false,
    logLevel: "silent",
  });
  await mkdir(directory, { recursive: true });
  await replace(join(directory, "ready.mjs"), await readFile(join(here, "src/ready.mjs")));
  for (const [libc, addon] of koffiAddons())
    await replace(join(directory, `koffi-${libc}.node`), await readFile(addon));
  for (const { path, contents } of result.outputFiles) await replace(path, contents);
  return { directory, entry: join(directory, "main.mjs") };
}

/** The native half of koffi for this machine, by C library. (docs/decisions/0009-libc-by-koffi.md) */
function koffiAddons(): readonly (readonly [libc: string, path: string])[] {
  const koffi = dirname(createRequire(import.meta.url).resolve("koffi"));
  const native = join(koffi, `../@koromix/koffi-linux-${process.arch}`);
  const addons = [
    ["glibc", join(native, `linux_${process.arch}/koffi.node`)],
    ["musl", join(native, `musl_${process.arch}/koffi.node`)],
  ] as const;
  return addons.filter(([, path]) => existsSync(path));
}

async function replace(path: string, content: Uint8Array): Promise<void> {
  const present = await readFile(path).catch(() => undefined); // Absent, or unreadable and to be replaced.
  if (present?.equals(content)) return;
  const temporary = `${path}.${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(temporary, content);
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}
