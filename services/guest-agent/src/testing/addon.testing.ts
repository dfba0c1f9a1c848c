import { createRequire } from "node:module";
import { join } from "node:path";
import { bundleGuestAgent } from "../../bundle.ts";
import type { Koffi } from "../libc/koffi.ts";

/** The addon for this machine's C library, as the bundle has it. */
export async function addon(): Promise<Koffi> {
  const { directory } = await bundleGuestAgent();
  const require = createRequire(import.meta.url);
  try {
    return require(join(directory, "koffi-glibc.node"));
  } catch {
    return require(join(directory, "koffi-musl.node")); // Another C library.
  }
}

/** The file of the thread that starts programs, as the bundle has it. */
export async function startThread(): Promise<string> {
  return join((await bundleGuestAgent()).directory, "start-thread.mjs");
}
