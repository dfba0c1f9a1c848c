import { invalidFile } from "./file-errors.ts";

/** Refuses what are not permission bits. */
export function checkMode(mode: number | undefined): void {
  if (mode !== undefined && mode > 0o7777) throw invalidFile("mode", "has more than permission bits (at most 4095)");
}
