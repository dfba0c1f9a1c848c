import type { BigIntStats } from "node:fs";
import { refused } from "./file-errors.ts";

/** Refuses what has no content of its own: directories, FIFOs, sockets, devices. */
export function assertRegular(stat: BigIntStats, path: string): void {
  if (stat.isFile()) return;
  throw refused("NOT_REGULAR_FILE", path, "it is not a regular file. Nothing was read or changed");
}
