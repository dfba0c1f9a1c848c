import { fileBatchMax } from "@holdfast/contract";
import type { FileInfoInit } from "./file-info.ts";

/** Paths and link targets can be 4 KiB each; a message stays well below what any client takes. */
const batchMaxBytes = 512 * 1024;
const bytesOfOthers = 96;

/** Cuts lists into messages: by number, and by size where names are long. */
export async function sendBatches(
  lists: AsyncIterable<readonly FileInfoInit[]>,
  send: (files: FileInfoInit[]) => boolean,
  drained: () => Promise<void>,
): Promise<void> {
  let batch: FileInfoInit[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    const ready = send(batch);
    batch = [];
    bytes = 0;
    if (!ready) await drained();
  };
  for await (const list of lists) {
    for (const file of list) {
      batch.push(file);
      bytes += 3 * (file.path.length + (file.linkTarget?.length ?? 0)) + bytesOfOthers;
      if (batch.length >= fileBatchMax || bytes >= batchMaxBytes) await flush();
    }
    await flush(); // What is known is sent: the next list may take a while.
  }
}
