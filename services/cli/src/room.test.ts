import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { room } from "./room.ts";

it("waits for room as often as it takes, and leaves no listener on the stream", async () => {
  const taken: (() => void)[] = [];
  const slow = new Writable({ highWaterMark: 1, write: (_data, _encoding, done) => void taken.push(done) });
  const before = slow.listenerCount("close") + slow.listenerCount("drain") + slow.listenerCount("error");
  for (let at = 0; at < 20; at += 1) {
    expect(slow.write("ab")).toBe(false);
    let isOver = false;
    const waiting = room(slow).then(() => {
      isOver = true;
    });
    await Promise.resolve();
    expect(isOver).toBe(false);
    taken.pop()?.();
    await waiting;
    expect(slow.listenerCount("close") + slow.listenerCount("drain") + slow.listenerCount("error")).toBe(before);
  }
});

it("does not wait for a stream that is over", async () => {
  const stuck = new Writable({ highWaterMark: 1, write: () => undefined });
  stuck.write("ab");
  const waiting = room(stuck);
  stuck.destroy();
  await waiting;
  await room(stuck);
});
