import { resourceUseTimeoutMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { expect, it } from "vitest";
import { ResourceUse, type UseSources } from "./resource-use.ts";

const here = { root: "/w", podUid: "p" };
const facts = { frsize: 1n, blocks: 10n, bfree: 4n, bavail: 3n, files: 0n, ffree: 0n };
const disk = { totalBytes: 10n, usedBytes: 6n, availableBytes: 3n };
const memory = { usedBytes: 5n };
const answering: UseSources = { fileSystem: async () => facts, memory: async () => memory };

/** A question that is answered when the test says so. */
function held<T>(answer: T) {
  const gates: PromiseWithResolvers<void>[] = [];
  return {
    gates,
    ask: async (): Promise<T> => {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
      return answer;
    },
  };
}

it("is told whole, and leaves no timer behind", async () => {
  const clock = new HandClock();
  expect(await new ResourceUse(here, clock, answering).read()).toEqual({ disk, memory });
  expect(clock.pending).toBe(0);
});

it("G3 a disk that does not answer is left out after 500 ms, and is asked by one thread however many ask", async () => {
  const clock = new HandClock();
  const hung = held(facts);
  const use = new ResourceUse(here, clock, { ...answering, fileSystem: hung.ask });
  for (let asked = 0; asked < 3; asked += 1) {
    let isAnswered = false;
    const both = [use.read(), use.read()];
    void both[0]?.then(() => {
      isAnswered = true;
    });
    clock.pass(resourceUseTimeoutMs - 1);
    await new Promise(setImmediate);
    expect(isAnswered).toBe(false);
    clock.pass(1);
    expect(await Promise.all(both)).toEqual([{ memory }, { memory }]);
  }
  expect(hung.gates).toHaveLength(1);
  expect(use.isBusy).toBe(true);
  hung.gates[0]?.resolve();
  await new Promise(setImmediate);
  const back = use.read();
  hung.gates[1]?.resolve();
  expect(await back).toEqual({ disk, memory });
  expect(use.isBusy).toBe(false);
});

it("a control group that does not answer is left out likewise", async () => {
  const clock = new HandClock();
  const hung = held(memory);
  const read = new ResourceUse(here, clock, { ...answering, memory: hung.ask }).read();
  await new Promise(setImmediate); // The disk has answered.
  clock.pass(resourceUseTimeoutMs);
  expect(await read).toEqual({ disk });
});

it("what cannot be learned is left out; the next question is a new one", async () => {
  const clock = new HandClock();
  let fails = true;
  const fileSystem = async () => {
    if (fails) throw new Error("ENOSYS");
    return facts;
  };
  const use = new ResourceUse(here, clock, { fileSystem, memory: async () => undefined });
  expect(await use.read()).toEqual({});
  fails = false;
  expect(await use.read()).toEqual({ disk });
});

it("the kernel's own answer is of the disk that the root is on", async () => {
  const { disk: own } = await new ResourceUse({ ...here, root: import.meta.dirname }, new HandClock()).read();
  expect(own?.totalBytes).toBeGreaterThan(0n);
  expect((own?.usedBytes ?? 0n) <= (own?.totalBytes ?? 0n)).toBe(true);
});
