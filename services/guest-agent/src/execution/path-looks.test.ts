import { userPathAnswerMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { LooksHeld, PathLooks, PathUnanswered } from "./path-looks.ts";

/** Two looks that are under way, and how to answer the first. */
function busy() {
  const clock = new HandClock();
  const looks = new PathLooks(clock);
  const answer = Promise.withResolvers<string>();
  const first = looks.at("/one", () => answer.promise);
  const second = looks.at("/two", () => new Promise<string>(() => undefined)).catch((error) => error);
  return { clock, looks, answer, first, second };
}

describe("looks at paths of the user's", () => {
  it("that waited for others have their whole time once they begin: no file system is called dead that was just asked", async () => {
    const { clock, looks, answer, first, second } = busy();
    const begun = Promise.withResolvers<void>();
    const third = looks.at("/three", () => {
      begun.resolve();
      return new Promise<string>(() => undefined);
    });
    let isTold = false;
    const told = third
      .catch((error) => error)
      .finally(() => {
        isTold = true;
      });
    clock.pass(userPathAnswerMs - 1);
    answer.resolve("there");
    expect(await first).toBe("there");
    await begun.promise;
    clock.pass(userPathAnswerMs - 1);
    expect(await second).toBeInstanceOf(PathUnanswered);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isTold).toBe(false);
    clock.pass(1);
    expect(await told).toBeInstanceOf(PathUnanswered);
    await expect(looks.at("/three/below", async () => "there")).rejects.toBeInstanceOf(PathUnanswered);
  });

  it("that never begin are told what holds them, in time", async () => {
    const { clock, looks, first } = busy();
    first.catch(() => undefined); // It is not answered either.
    const third = looks.at("/three", async () => "there").catch((error) => error);
    clock.pass(userPathAnswerMs);
    expect(await third).toBeInstanceOf(LooksHeld);
  });
});
