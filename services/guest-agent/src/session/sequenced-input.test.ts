import { inputAheadMax, inputAheadWaitMs } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import { HandClock } from "@holdfast/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SequencedInput } from "./sequenced-input.ts";

const never = new AbortController().signal;
const bytes = (text: string): Uint8Array => Buffer.from(text);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A terminal that takes so many bytes and is full then. */
function terminal(room = Number.POSITIVE_INFINITY) {
  const clock = new HandClock();
  const state = { room, text: "" };
  const input = new SequencedInput((data) => {
    const taken = Math.min(state.room, data.length);
    state.room -= taken;
    state.text += Buffer.from(data.subarray(0, taken)).toString("latin1");
    return taken;
  }, clock);
  const put = (sequence: number, text: string, signal = never, admit = (): void => undefined) =>
    input.put({ sequence, data: bytes(text), signal, admit });
  return { state, clock, input, put };
}

describe("input", () => {
  it("G19 is written in order, and what comes again is a success that writes nothing", async () => {
    const { state, put } = terminal();
    expect(await put(1, "a")).toBe(2);
    expect(await put(2, "b")).toBe(3);
    expect(await put(1, "a")).toBe(3);
    expect(await put(2, "anything")).toBe(3);
    expect(state.text).toBe("ab");
  });

  it("G19 holds what comes ahead until those before it have come", async () => {
    const { state, put } = terminal();
    const third = put(3, "c");
    const second = put(2, "b");
    await turn();
    expect(state.text).toBe("");
    await put(1, "a");
    expect([await second, await third]).toEqual([3, 4]);
    expect(state.text).toBe("abc");
  });

  it("G19 refuses what is ahead for 2 s, and what is ahead by too much at once, naming what comes next", async () => {
    const { state, clock, put } = terminal();
    const late = put(2, "b");
    const refused = expect(late).rejects.toMatchObject({ reason: "INPUT_OUT_OF_ORDER", metadata: { expected: "1" } });
    await turn();
    clock.pass(inputAheadWaitMs - 1);
    await turn();
    clock.pass(1);
    await refused;
    const held = Array.from({ length: inputAheadMax }, (_, at) => put(at + 2, "x").catch((error) => error.reason));
    await expect(put(99, "x")).rejects.toMatchObject({ reason: "INPUT_OUT_OF_ORDER" });
    await expect(put(1, "a")).resolves.toBe(2);
    expect(await Promise.all(held)).toEqual(Array.from({ length: inputAheadMax }, () => expect.any(Number)));
    expect(state.text).toBe(`a${"x".repeat(inputAheadMax)}`);
    const half = "h".repeat(131_072);
    const window = [put(67, half), put(68, half)].map((call) => call.catch((error) => error.reason)); // 256 KiB: all that may wait.
    await expect(put(69, "x")).rejects.toMatchObject({ reason: "INPUT_OUT_OF_ORDER", metadata: { expected: "66" } });
    await expect(put(66, "")).resolves.toBe(67);
    expect(await Promise.all(window)).toEqual([69, 69].map(() => expect.any(Number)));
    expect(state.text).toHaveLength(1 + inputAheadMax + 262_144);
    const large = Buffer.alloc(200_000, 0x79).toString();
    const waiting = put(101, large).catch((error) => error.reason);
    await expect(put(102, large)).rejects.toMatchObject({ reason: "INPUT_OUT_OF_ORDER" });
    await turn();
    clock.pass(inputAheadWaitMs);
    expect(await waiting).toBe("INPUT_OUT_OF_ORDER");
  });

  it("G19 a program that does not read makes nobody late: those behind wait as long as it takes", async () => {
    const { state, clock, put } = terminal(1);
    const first = put(1, "aa");
    const second = put(2, "b");
    for (let at = 0; at < 200; at += 1) {
      clock.pass(100);
      await turn();
    }
    expect(state.text).toBe("a");
    state.room = 10;
    clock.pass(100);
    expect([await first, await second]).toEqual([2, 3]);
    expect(state.text).toBe("aab");
  });

  it("B23 continues a partly written message where it was given up, from whichever caller", async () => {
    const { state, clock, put, input } = terminal(3);
    const gone = new AbortController();
    const first = put(1, "abcdef", gone.signal);
    await turn();
    expect(state.text).toBe("abc");
    gone.abort(new Error("the reply is lost"));
    await expect(first).rejects.toThrow("the reply is lost");
    expect(input.next).toBe(1);
    state.room = 100;
    await expect(put(1, "other!")).rejects.toMatchObject({ reason: "INVALID_REQUEST", metadata: { written: "3" } });
    expect(await put(1, "abcdef")).toBe(2);
    expect(state.text).toBe("abcdef");
    expect(clock.pending).toBe(0);
  });

  it("G19 two callers that carry one sequence at once write it once", async () => {
    const { state, clock, put } = terminal(2);
    const both = [put(1, "abcd"), put(1, "abcd")];
    await turn();
    state.room = 100;
    clock.pass(50);
    expect(await Promise.all(both)).toEqual([2, 2]);
    expect(state.text).toBe("abcd");
  });

  it("G5a a caller that may not write any more writes no further byte, and nobody is held up by it", async () => {
    const { state, clock, put } = terminal(2);
    let refused = false;
    const first = put(1, "abcd", never, () => {
      if (refused) throw new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "superseded");
    });
    const expectation = expect(first).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    await turn();
    refused = true;
    state.room = 100;
    clock.pass(50);
    await expectation;
    expect(state.text).toBe("ab");
  });

  it("G18 G19 a message that stays half written is told as that, whoever it was that ended it", async () => {
    const over = new AnsweredError("ATTACHMENT_DISPLACED", "Displaced.", { last_sequence: "0" });
    const displaced = terminal(2);
    const cut = displaced.put(1, "abcd");
    await turn();
    displaced.input.end(over);
    const half = { sequence: "1", written: "2" };
    await expect(cut).rejects.toMatchObject({
      reason: "ATTACHMENT_DISPLACED",
      metadata: { last_sequence: "0", ...half },
    });
    // Whoever asks again is told the same.
    await expect(displaced.put(1, "abcd")).rejects.toMatchObject({ metadata: half });

    const fenced = terminal(2);
    let mayWrite = true;
    const refused = fenced.put(1, "abcd", never, () => {
      if (!mayWrite) throw new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "Superseded.");
    });
    await turn();
    mayWrite = false;
    fenced.clock.pass(1_000);
    await expect(refused).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED", metadata: half });

    const whole = terminal();
    await whole.put(1, "abcd");
    whole.input.end(over);
    const { metadata } = await whole.put(2, "x").then(
      () => expect.fail("written"),
      (error) => error,
    );
    expect(metadata).toEqual({ last_sequence: "0" });
  });

  it("G18 tells all who wait why it is over", async () => {
    const { put, input } = terminal(0);
    const reasons = [put(1, "a"), put(1, "a"), put(2, "b")].map((call) => call.catch((error) => error.reason));
    await turn();
    input.end(new AnsweredError("ATTACHMENT_DISPLACED", "displaced"));
    expect(await Promise.all(reasons)).toEqual(Array.from({ length: 3 }, () => "ATTACHMENT_DISPLACED"));
    await expect(put(1, "a")).rejects.toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
  });

  it("G18 tells it to who repeats what was written, too: its answer would name what nobody may send any more", async () => {
    const { put, input } = terminal(8);
    expect(await put(1, "a")).toBe(2);
    input.end(new AnsweredError("ATTACHMENT_DISPLACED", "displaced"));
    await expect(put(1, "a")).rejects.toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
  });

  it("G19 exactly once, whatever is sent twice, out of order, or given up in the middle", async () => {
    const step = fc.record({
      sequence: fc.nat({ max: 5 }),
      givesUp: fc.boolean(),
      room: fc.nat({ max: 6 }),
      pumps: fc.nat({ max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { state, clock, put, input } = terminal(0);
        const texts = ["abc", "", "defgh", "i", "jk", "lmnop"];
        const calls: Promise<unknown>[] = [];
        const pump = async (): Promise<void> => {
          await turn();
          clock.pass(32);
          await turn();
        };
        for (const { sequence, givesUp, room, pumps } of steps) {
          const given = new AbortController();
          calls.push(put(sequence + 1, texts[sequence] ?? "", given.signal).catch((error) => error));
          state.room += room;
          for (let at = 0; at < pumps; at += 1) await pump();
          if (givesUp) given.abort(new Error("gone"));
        }
        state.room = 1_000;
        for (let sequence = 1; sequence <= texts.length; sequence += 1) {
          const call = put(sequence, texts[sequence - 1] ?? "");
          while (input.next <= sequence) await pump();
          await call;
        }
        expect(state.text).toBe(texts.join(""));
        for (let at = 0; at < 80; at += 1) await pump(); // What waits ahead is over by then.
        await Promise.all(calls);
        expect(clock.pending).toBe(0);
      }),
      { numRuns: 150 },
    );
  });
});
