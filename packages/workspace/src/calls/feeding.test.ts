import { systemClock } from "@holdfast/async";
import { bootIdOf, type ExecutionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { FakeExecutions } from "@holdfast/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SignalOrder, StdinInput, StdinTaken } from "../ports/executions.ts";
import { GuestLost, GuestNotReached } from "../ports/guest.ts";
import { type CommandInput, Feeding } from "./feeding.ts";

const executionId = "x" as ExecutionId;
const started = { t: "started", executionId, bootId: bootIdOf("b"), attached: false } as const;
const stdin = (data: Uint8Array | string): CommandInput => ({ t: "stdin", data: Buffer.from(data) });

/** A program's input as the guest keeps it; `lose` says what becomes of each write. */
class Program extends FakeExecutions {
  received = Buffer.alloc(0);
  ended = false;
  readonly order: string[] = [];
  readonly largest = { write: 0 };
  lose: () => "before" | "after" | "not" = () => "not";
  gate: Promise<void> | undefined;
  closed = false;

  override async writeStdin({ offset, data, end }: StdinInput): Promise<StdinTaken> {
    await this.gate;
    const loss = this.lose();
    if (loss === "before") throw new GuestNotReached("no-connection", "refused");
    expect(offset).toBeLessThanOrEqual(this.received.length);
    this.largest.write = Math.max(this.largest.write, data.length);
    if (this.closed) return { nextOffset: this.received.length, closed: true };
    this.received = Buffer.concat([this.received, data.subarray(this.received.length - offset)]);
    if (end) this.ended = true;
    this.order.push(end ? "end" : "input");
    if (loss === "after") throw new GuestLost("cut");
    return { nextOffset: this.received.length, closed: false };
  }

  override async signal(order: SignalOrder): Promise<{ readonly alreadyEnded: boolean }> {
    this.order.push(order.signal);
    return { alreadyEnded: false };
  }
}

async function* of(...requests: readonly CommandInput[]): AsyncGenerator<CommandInput> {
  yield* requests;
}

const feedingOf = (program: Program): Feeding => new Feeding({ executions: program, started, clock: systemClock });

describe("G12 a client's input on its way to its command", () => {
  it("is taken once and in order, in pieces of at most 64 KiB, whatever is lost before or after it took effect", async () => {
    const pieces = fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 40 }),
        fc.nat(200_000).map((n) => new Uint8Array(n).fill(n)),
      ),
      {
        maxLength: 12,
      },
    );
    const losses = fc.array(fc.constantFrom("before" as const, "after" as const), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(pieces, losses, fc.uint8Array({ maxLength: 300 }), async (data, lost, first) => {
        const program = new Program();
        const left = [...lost];
        program.lose = () => left.pop() ?? "not";
        const feeding = feedingOf(program);
        const requests = of(...data.map(stdin), { t: "stdin_end" });
        expect(await feeding.run(first, requests)).toBe("all_said");
        expect(program.received.equals(Buffer.concat([first, ...data]))).toBe(true);
        expect(program.ended).toBe(true);
        expect(program.largest.write).toBeLessThanOrEqual(64 * 1024);
      }),
      { numRuns: 60 },
    );
  });

  it("comes before the signal that follows it; a signal is sent once", async () => {
    const program = new Program();
    await feedingOf(program).run(
      undefined,
      of(stdin("a"), { t: "signal", signal: "INT" }, stdin("b"), { t: "stdin_end" }),
    );
    expect(program.order).toEqual(["input", "INT", "input", "end"]);
    expect(program.received.toString()).toBe("ab");
  });

  it("does not hold a signal up for ever behind a program that reads nothing", async () => {
    const program = new Program();
    const opened = Promise.withResolvers<void>();
    program.gate = opened.promise;
    const feeding = feedingOf(program);
    const running = feeding.run(undefined, of(stdin("a"), { t: "signal", signal: "INT" }));
    await expect.poll(() => program.order).toEqual(["INT"]);
    opened.resolve();
    expect(await running).toBe("all_said");
    expect(program.order).toEqual(["INT", "input"]);
  });

  it("B57 is dropped once the program takes no more, and the requests are still read", async () => {
    const program = new Program();
    program.closed = true;
    const big = Array.from({ length: 50 }, () => stdin(new Uint8Array(64 * 1024)));
    const running = feedingOf(program).run(undefined, of(...big, { t: "stdin_end" }, { t: "signal", signal: "TERM" }));
    expect(await running).toBe("all_said");
    expect(program.order).toEqual(["TERM"]);
    expect(program.received).toHaveLength(0);
  });

  it("ends at a detach, with what was sent before it taken", async () => {
    const program = new Program();
    const feeding = feedingOf(program);
    expect(await feeding.run(undefined, of(stdin("a"), { t: "detach" }, stdin("never")))).toBe("detached");
    expect([feeding.isDetached, program.received.toString()]).toEqual([true, "a"]);
  });

  it("fails by what the guest answers, or by a request that is wrong; not by what else ends the requests", async () => {
    const refused = new HoldfastError("HOLDER_EPOCH_SUPERSEDED", { message: "no" });
    const program = new Program();
    program.lose = () => {
      throw refused;
    };
    const feeding = feedingOf(program);
    await expect(feeding.run(undefined, of(stdin("a")))).rejects.toBe(refused);
    expect(feeding.failure).toEqual({ thrown: refused });
    const late = feedingOf(new Program());
    await expect(late.run(undefined, of({ t: "stdin_end" }, stdin("a")))).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
    });
    const whole = new Program();
    const drained = feedingOf(whole);
    const requests = async function* (): AsyncGenerator<CommandInput> {
      yield stdin("a");
      throw new HoldfastError("SERVICE_DRAINING", { message: "stopping" });
    };
    expect(await drained.run(undefined, requests())).toBe("all_said");
    expect([drained.failure, whole.received.toString()]).toEqual([undefined, "a"]);
  });

  it("waits in the client beyond what may wait here", async () => {
    const program = new Program();
    program.gate = new Promise(() => undefined);
    let pulled = 0;
    const flood = async function* (): AsyncGenerator<CommandInput> {
      for (;;) {
        pulled += 1;
        yield stdin(new Uint8Array(16 * 1024));
      }
    };
    const feeding = feedingOf(program);
    void feeding.run(undefined, flood()).catch(() => undefined);
    await expect.poll(() => pulled).toBe(16);
    await new Promise((resolve) => setImmediate(resolve));
    expect(pulled).toBe(16);
    feeding.end();
  });
});
