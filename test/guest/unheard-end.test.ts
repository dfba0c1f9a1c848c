import { Deadline, systemClock } from "@holdfast/async";
import { linkStreamCloseMs } from "@holdfast/contract";
import { afterEach, expect, it, vi } from "vitest";
import { clientOf, guestProcess, scriptOf } from "./guest-process.ts";

const soon = () => new Deadline(systemClock, 10_000);

afterEach(() => void vi.useRealTimers());

it("a client's end is heard by an agent that stood still meanwhile, though its commands flood their streams", async () => {
  const { child, address } = await guestProcess();
  const guest = clientOf(address);
  const client = new AbortController();
  const runs = Array.from({ length: 12 }, (_, at) => {
    const flood = scriptOf(`flood-${at}`, "while :; do echo abcdefghijklmnop; done", { onDisconnect: "cancel" });
    return guest.execute(flood, client.signal)[Symbol.asyncIterator]();
  });
  // Not all is read: what the guest still has to send is in its way.
  for (const run of runs) for (let at = 0; at < 10; at += 1) await run.next();
  child.kill("SIGSTOP");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  client.abort(new Error("the client has gone"));
  for (const run of runs) await expect(toItsEnd(run)).rejects.toThrow("the client has gone");
  // What is under way arrives, so that the end is in the guest's hands.
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(linkStreamCloseMs);
  vi.useRealTimers();
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  child.kill("SIGCONT");
  const running = async () => (await guest.executions.list(soon())).executions.filter(({ exit }) => exit === undefined);
  await expect.poll(running, { timeout: 15_000 }).toEqual([]);
});

/** What had arrived before the end is still delivered; then the end comes. */
async function toItsEnd(run: AsyncIterator<unknown>): Promise<void> {
  while (!(await run.next()).done);
}
