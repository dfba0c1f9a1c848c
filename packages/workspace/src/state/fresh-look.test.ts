import { describe, expect, it } from "vitest";
import { FreshLook } from "./fresh-look.ts";

describe("a fresh look", () => {
  it("answers only those who asked before it began: the others share one that begins after", async () => {
    const looks = new FreshLook<number>();
    const first = Promise.withResolvers<number>();
    let begun = 0;
    const look = (result: number | Promise<number>) => async () => {
      begun += 1;
      return await result;
    };
    const early = looks.run(look(first.promise));
    const late = [looks.run(look(2)), looks.run(look(3))];
    expect(begun).toBe(1);
    first.resolve(1);
    expect(await early).toBe(1);
    expect(await Promise.all(late)).toEqual([2, 2]);
    expect(begun).toBe(2);
    expect(await looks.run(look(4))).toBe(4);
  });

  it("that fails, fails only those who waited for it", async () => {
    const looks = new FreshLook<number>();
    const failing = looks.run(() => Promise.reject(new Error("unread")));
    const next = looks.run(async () => 2);
    await expect(failing).rejects.toThrow("unread");
    expect(await next).toBe(2);
  });
});
