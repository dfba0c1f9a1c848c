import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Looks } from "./looks.ts";

/** A machine that changes, and looks that are run by hand. */
function machine() {
  let now = 0;
  const due: (() => void)[] = [];
  const begun: number[] = [];
  const looks = new Looks(
    () => {
      begun.push(now);
      return now;
    },
    (look) => due.push(look),
  );
  return {
    looks,
    begun,
    tick: () => ++now,
    run: () => due.shift()?.(),
    runAll: () => {
      while (due.length > 0) due.shift()?.();
    },
  };
}

describe("looks at the machine", () => {
  it("G9 are one for all who ask at the same moment", async () => {
    const { looks, begun, tick, runAll } = machine();
    const answers = Array.from({ length: 64 }, (_, at) => looks.ask((view) => view * 100 + at));
    tick();
    runAll();
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 64 }, (_, at) => 100 + at));
    expect(begun).toEqual([1]);
  });

  it("G9 answer no question that was asked after they began", async () => {
    const { looks, begun, tick, runAll } = machine();
    let late: Promise<number> | undefined;
    const early = looks.ask((view) => {
      tick();
      late = looks.ask((later) => later); // While the first is being answered.
      return view;
    });
    runAll();
    expect([await early, await late]).toEqual([0, 1]);
    expect(begun).toEqual([0, 1]);
  });

  it("G11 fail for each question by itself: what one could not see, another may", async () => {
    const { looks, runAll } = machine();
    const blind = looks.ask(() => {
      throw new Error("EMFILE");
    });
    const sees = looks.ask((view) => view);
    runAll();
    await expect(blind).rejects.toThrow("EMFILE");
    expect(await sees).toBe(0);
  });

  it("G9 begin after each question, in whatever order questions, changes and looks come, and never more often than there are questions", async () => {
    const step = fc.constantFrom("ask", "change", "look");
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { looks, begun, tick, run, runAll } = machine();
        let now = 0;
        const asked: { readonly atMs: number; readonly answer: Promise<number> }[] = [];
        for (const each of steps) {
          if (each === "ask") asked.push({ atMs: now, answer: looks.ask((view) => view) });
          else if (each === "change") now = tick();
          else run();
        }
        runAll();
        for (const { atMs, answer } of asked) expect(await answer).toBeGreaterThanOrEqual(atMs);
        expect(begun.length).toBeLessThanOrEqual(asked.length);
      }),
    );
  });
});
