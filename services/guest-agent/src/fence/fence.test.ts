import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AnsweredError } from "@holdfast/guest-link";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { EpochFile, EpochNotKept, type EpochStore } from "./epoch-file.ts";
import { Fence } from "./fence.ts";
import { openFence } from "./open-fence.ts";

const never = new AbortController().signal;
const memory: EpochStore = { write: async () => undefined };

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-fence-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The reason it fails with; throws where it does not. */
async function reasonOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof AnsweredError) return error.reason;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("the fence", () => {
  it("G5a judges: lower is superseded, higher is not taken, none only passes while nobody has fenced", async () => {
    const fence = new Fence(0n, memory);
    fence.admit(undefined);
    fence.admit(0n);
    expect(await reasonOf(() => fence.admit(1n))).toBe("HOLDER_EPOCH_NOT_TAKEN");
    expect(await fence.raise(7n, never)).toBe(7n);
    fence.admit(7n);
    expect(await reasonOf(() => fence.admit(undefined))).toBe("HOLDER_EPOCH_REQUIRED");
    expect(await reasonOf(() => fence.admit(6n))).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect(await reasonOf(() => fence.admit(8n))).toBe("HOLDER_EPOCH_NOT_TAKEN");
    const error = await fence.effect(6n, () => undefined).catch((refusal) => refusal);
    expect(error.metadata).toEqual({ mine: "6", stored: "7" });
  });

  it("G5a a raise waits for the effects of lower epochs, and for those alone", async () => {
    const fence = new Fence(1n, memory);
    const gate = Promise.withResolvers<void>();
    const old = fence.effect(1n, () => gate.promise);
    let raised = false;
    const raise = fence.raise(2n, never).then(() => {
      raised = true;
    });
    while (fence.epoch < 2n) await new Promise(setImmediate);
    const other = Promise.withResolvers<void>();
    const mine = fence.effect(2n, () => other.promise); // The new holder works meanwhile.
    await new Promise(setImmediate);
    expect(raised).toBe(false);
    gate.resolve();
    await raise;
    await old;
    other.resolve();
    await mine;
  });

  it("G5a a raise whose caller gives up stands; the same epoch waits again", async () => {
    const fence = new Fence(1n, memory);
    const gate = Promise.withResolvers<void>();
    const old = fence.effect(1n, () => gate.promise);
    const caller = new AbortController();
    const given = fence.raise(2n, caller.signal).catch((reason) => reason);
    while (fence.epoch < 2n) await new Promise(setImmediate);
    caller.abort("time is over");
    expect(await given).toBe("time is over");
    expect(await reasonOf(() => fence.admit(1n))).toBe("HOLDER_EPOCH_SUPERSEDED");
    let again = false;
    const repeated = fence.raise(2n, never).then(() => {
      again = true;
    });
    await new Promise(setImmediate);
    expect(again).toBe(false);
    gate.resolve();
    await repeated;
    await old;
  });

  it("G5a what lower epochs hold is ended by name, once; what was let go, or is the holder's, is not", async () => {
    const fence = new Fence(1n, memory);
    const ended: string[] = [];
    const hold = (name: string, epoch: bigint): (() => void) =>
      fence.onRaise(epoch, ({ reason, metadata }) =>
        ended.push(`${name} ${reason} ${metadata.mine}<${metadata.stored}`),
      );
    hold("upload", 1n);
    hold("gone", 1n)();
    fence.onRaise(1n, () => {
      throw new Error("one that fails");
    });
    hold("tunnel", 1n);
    await fence.raise(3n, never);
    hold("new", 3n);
    await fence.raise(3n, never);
    expect(ended).toEqual(["upload HOLDER_EPOCH_SUPERSEDED 1<3", "tunnel HOLDER_EPOCH_SUPERSEDED 1<3"]);
    expect(await reasonOf(() => hold("late", 1n))).toBe("HOLDER_EPOCH_SUPERSEDED");
  });

  it("G5a a number that cannot be kept raises nothing; one that may be in place already does", async () => {
    let failure: EpochNotKept | undefined = new EpochNotKept(
      false,
      Object.assign(new Error("full"), { code: "ENOSPC" }),
    );
    const fence = new Fence(4n, {
      write: async () => {
        if (failure) throw failure;
      },
    });
    expect(await reasonOf(() => fence.raise(5n, never))).toBe("DISK_FULL");
    fence.admit(4n);
    failure = new EpochNotKept(true, Object.assign(new Error("i/o"), { code: "EIO" }));
    expect(await reasonOf(() => fence.raise(5n, never))).toBe("INTERNAL_ERROR");
    expect(await reasonOf(() => fence.admit(4n))).toBe("HOLDER_EPOCH_SUPERSEDED");
    // Until it is durable the same epoch is no success.
    expect(await reasonOf(() => fence.raise(5n, never))).toBe("INTERNAL_ERROR");
    failure = undefined;
    expect(await fence.raise(5n, never)).toBe(5n);
  });

  it("G5a whatever the order of spawns, renames and raises: after a raise has answered nothing lower takes effect", async () => {
    const step = fc.record({ epoch: fc.integer({ min: 0, max: 4 }), parts: fc.integer({ min: 1, max: 3 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(step, { minLength: 1, maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
        async (scheduler, calls, raises) => {
          let kept = 0n;
          const fence = new Fence(0n, {
            write: async (epoch) => {
              await scheduler.schedule(Promise.resolve(), `keep ${epoch}`);
              kept = epoch;
            },
          });
          let answered = 0n;
          let effects = 0;
          const works = calls.map(async ({ epoch, parts }) => {
            await scheduler.schedule(Promise.resolve(), `call of ${epoch}`);
            const level = BigInt(epoch);
            try {
              for (let part = 0; part < parts; part += 1) {
                await fence.effect(level, async () => {
                  // As a rename does: handed off, and in effect some time later.
                  await scheduler.schedule(Promise.resolve(), `effect of ${epoch}`);
                  expect(level).toBeGreaterThanOrEqual(answered);
                  effects += 1;
                });
              }
            } catch (error) {
              if (!(error instanceof AnsweredError)) throw error;
              expect(level).not.toBe(fence.epoch);
            }
          });
          const fences = raises.map(async (epoch) => {
            await scheduler.schedule(Promise.resolve(), `raise to ${epoch}`);
            const level = BigInt(epoch);
            try {
              expect(await fence.raise(level, never)).toBe(level);
              expect(kept).toBeGreaterThanOrEqual(level);
              if (level > answered) answered = level;
            } catch (error) {
              if (!(error instanceof AnsweredError)) throw error;
              expect(error.reason).toBe("HOLDER_EPOCH_SUPERSEDED");
              expect(fence.epoch).toBeGreaterThan(level);
            }
          });
          await scheduler.waitFor(Promise.all([...works, ...fences]));
          expect(fence.epoch).toBe(BigInt(Math.max(...raises)));
          expect(kept).toBe(fence.epoch);
          expect(effects).toBeLessThanOrEqual(calls.reduce((sum, { parts }) => sum + parts, 0));
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("the epoch's file", () => {
  it("G5a keeps the number across processes, and reads 0 only where none was kept", async () => {
    const path = directory();
    const first = await openFence(path);
    expect(first.epoch).toBe(0n);
    await first.raise(9_007_199_254_740_991n, never);
    expect((await openFence(path)).epoch).toBe(9_007_199_254_740_991n);
  });

  it.each(["", "7", "07\n", "-1\n", "7\n7\n", "0x7\n", "9007199254740992\n", "\0\0\n"])(
    "G5a does not start on %j",
    async (content) => {
      const path = directory();
      writeFileSync(join(path, "holder-epoch"), content);
      await expect(openFence(path)).rejects.toThrow(/HOLDER_EPOCH_UNREADABLE.*Replace the pod/s);
    },
  );

  it("G5a a half-written temporary of a killed agent changes nothing", async () => {
    const path = directory();
    await new EpochFile(path).write(3n);
    writeFileSync(join(path, "holder-epoch.new"), "4");
    const fence = await openFence(path);
    expect(fence.epoch).toBe(3n);
    await fence.raise(5n, never);
    expect(readFileSync(join(path, "holder-epoch"), "utf8")).toBe("5\n");
  });

  it("G5a says whether a number that failed may be in place", async () => {
    const path = directory();
    rmSync(path, { recursive: true });
    const failure = await new EpochFile(path).write(1n).catch((error) => error);
    expect(failure).toBeInstanceOf(EpochNotKept);
    expect(failure.inPlace).toBe(false);
  });
});
