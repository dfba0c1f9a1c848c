import { describe, expect, it } from "vitest";
import { detachKeyOf } from "./detach-key.ts";
import { UnconfirmedInput } from "./unconfirmed-input.ts";

const typed = (...texts: string[]): UnconfirmedInput => {
  const input = new UnconfirmedInput();
  input.restart(1n);
  for (const text of texts) input.add(Buffer.from(text));
  return input;
};
const textsOf = (pieces: readonly Uint8Array[]): string[] => pieces.map((piece) => Buffer.from(piece).toString());

describe("input that is not confirmed", () => {
  it("is sent again from the number on that the attachment names, and no earlier piece of it", () => {
    const input = typed("one", "two", "three");
    expect(textsOf(input.resume(2n))).toEqual(["two", "three"]);
    input.add(Buffer.from("four"));
    input.confirm(4n);
    expect(input.bytes).toBe(4);
    expect(textsOf(input.resume(4n))).toEqual(["four"]);
  });

  it("is never sent on to another attachment: how much is unsure is told", () => {
    const input = typed("one", "two");
    input.confirm(2n);
    expect(input.restart(1n)).toBe(3);
    expect(input.resume(1n)).toEqual([]);
    input.add(Buffer.from("new"));
    expect(textsOf(input.resume(1n))).toEqual(["new"]);
  });
});

describe("the detach key", () => {
  it("is a control character by its name, or none", () => {
    expect([detachKeyOf("ctrl-]"), detachKeyOf("^A"), detachKeyOf("CTRL-\\"), detachKeyOf("none")]).toEqual([
      0x1d,
      1,
      0x1c,
      undefined,
    ]);
    expect(() => detachKeyOf("alt-x")).toThrow();
  });
});
