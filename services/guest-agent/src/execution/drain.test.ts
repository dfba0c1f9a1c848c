import { closeSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { pipeMaker } from "../spawn/posix-spawner.ts";
import { addon } from "../testing/addon.testing.ts";
import { Drain } from "./drain.ts";

const silenceMs = 50;

/** As an agent that is kept from running, by its own work or by the machine. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** An output that a leftover holds open, and the drain of it. */
async function drained() {
  const [readFd, writeFd] = pipeMaker(await addon())();
  const output = new Socket({ fd: readFd, readable: true, writable: false });
  onTestFinished(() => {
    output.destroy();
    closeSync(writeFd);
  });
  const drain = new Drain([output], silenceMs);
  const chunks: Buffer[] = [];
  output.on("data", (bytes: Buffer) => {
    drain.heard();
    chunks.push(bytes);
  });
  return { drain, text: () => Buffer.concat(chunks).toString(), write: (text: string) => writeSync(writeFd, text) };
}

describe("the drain of a command's outputs", () => {
  it("G10 G22 an agent that stood still for longer than the silence reads first what was written before it judges", async () => {
    const { drain, text, write } = await drained();
    const waited = drain.wait();
    write("the last words");
    standStill(2 * silenceMs);
    expect(await waited).toBe(false);
    expect(text()).toBe("the last words");
  });

  it("G10 G22 nor does the bound of all silences cut off what lies there to be read", async () => {
    const { drain, text, write } = await drained();
    const waited = drain.wait();
    write("the last words");
    standStill(5 * silenceMs);
    expect(await waited).toBe(false);
    expect(text()).toBe("the last words");
  });

  it("G10 of a leftover that never falls silent lasts four silences, and no longer", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const drain = new Drain([new PassThrough()], silenceMs);
    let is: boolean | undefined;
    void drain.wait().then((ended) => {
      is = ended;
    });
    for (let passedMs = 0; passedMs < 4 * silenceMs; passedMs += 10) {
      expect(is).toBeUndefined();
      drain.heard();
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(1);
    expect(is).toBe(false);
  });
});
