import { once } from "node:events";
import type { Writable } from "node:stream";

/** Resolves when what was written has left, or when the signal aborts. */
export async function drained(stream: Writable, signal: AbortSignal): Promise<void> {
  try {
    await once(stream, "drain", { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
