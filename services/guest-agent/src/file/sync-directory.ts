import { constants, fsync } from "node:fs";
import { promisify } from "node:util";
import type { Descriptor } from "./descriptor.ts";

const sync = promisify(fsync);

/** Makes the names in a directory durable. Of a pinned directory, since those that are only pinned cannot be synced. */
export async function syncDirectory(pinned: Descriptor): Promise<void> {
  using directory = await pinned.reopen(constants.O_RDONLY | constants.O_DIRECTORY);
  await sync(directory.fd);
}
