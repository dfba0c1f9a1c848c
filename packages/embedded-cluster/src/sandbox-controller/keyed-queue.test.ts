import { describe, expect, it } from "vitest";
import { KeyedQueue } from "./keyed-queue.ts";

/** Work that a test holds and lets go by hand. */
function heldWork() {
  const log: string[] = [];
  const held = new Map<string, () => void>();
  const work = (key: string): Promise<undefined> => {
    log.push(`start ${key}`);
    return new Promise((resolve) =>
      held.set(key, () => {
        log.push(`end ${key}`);
        resolve(undefined);
      }),
    );
  };
  const release = async (key: string): Promise<void> => {
    held.get(key)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { log, work, release };
}

const ignore = (): void => undefined;

describe("a keyed queue", () => {
  it("never works twice at once on a key, and once more when it was added meanwhile", async () => {
    const { log, work, release } = heldWork();
    const queue = new KeyedQueue({ work, concurrency: 4, onError: ignore });
    queue.add("a");
    queue.add("a");
    queue.add("a");
    expect(log).toEqual(["start a"]);
    await release("a");
    expect(log).toEqual(["start a", "end a", "start a"]);
    await release("a");
    expect(log).toEqual(["start a", "end a", "start a", "end a"]);
    await queue.stop();
  });

  it("works on as many keys at once as it may", async () => {
    const { log, work, release } = heldWork();
    const queue = new KeyedQueue({ work, concurrency: 2, onError: ignore });
    for (const key of ["a", "b", "c"]) queue.add(key);
    expect(log).toEqual(["start a", "start b"]);
    await release("b");
    expect(log).toEqual(["start a", "start b", "end b", "start c"]);
    await Promise.all([release("a"), release("c")]);
    await queue.stop();
  });

  it("tries again after a failure, and reports each", async () => {
    const errors: unknown[] = [];
    let left = 3;
    const done = Promise.withResolvers<void>();
    const queue = new KeyedQueue({
      work: async () => {
        if (left-- > 0) throw new Error(`${left}`);
        done.resolve();
        return undefined;
      },
      concurrency: 1,
      onError: (_, error) => errors.push(error),
    });
    queue.add("a");
    await done.promise;
    expect(errors).toEqual([new Error("2"), new Error("1"), new Error("0")]);
    await queue.stop();
  });

  it("comes back to a key that asked for it, and stops with what runs", async () => {
    let passes = 0;
    const again = Promise.withResolvers<void>();
    const queue = new KeyedQueue({
      work: async () => {
        if (++passes === 2) again.resolve();
        return { againAfterMs: passes === 1 ? 1 : 60_000 };
      },
      concurrency: 1,
      onError: ignore,
    });
    queue.add("a");
    await again.promise;
    await queue.stop();
    queue.add("a");
    expect(passes).toBe(2);
  });
});
