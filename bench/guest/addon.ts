import { createRequire } from "node:module";
import { join } from "node:path";
import type { Koffi } from "../../services/guest-agent/src/libc/koffi.ts";

/** The addon as the bundle has it. */
export function koffi(): Koffi {
  const directory = join(import.meta.dirname, "../../services/guest-agent/dist");
  return createRequire(import.meta.url)(join(directory, "koffi-glibc.node"));
}
