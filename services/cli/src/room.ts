import type { Writable } from "node:stream";

/** Resolves once the stream has room again, or is over: who writes next hears of that. Leaves no listener behind. */
export function room(stream: Writable): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of events) stream.off(event, done);
      resolve();
    };
    for (const event of events) stream.on(event, done);
  });
}

const events = ["drain", "close"] as const;
