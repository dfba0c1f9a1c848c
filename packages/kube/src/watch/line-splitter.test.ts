import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineSplitter } from "./line-splitter.ts";

describe("lines", () => {
  it("are the same however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.array(fc.nat({ max: 20 })), (texts, cuts) => {
        const lines = texts.map((text) => text.replaceAll("\n", " "));
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const splitter = new LineSplitter(1_000_000);
        const heard: string[] = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          heard.push(...splitter.push(bytes.subarray(at, at + cut)));
          at += cut;
        }
        expect(heard).toEqual(lines);
      }),
    );
  });

  it("that are too long are an error before they are held whole", () => {
    const splitter = new LineSplitter(10);
    splitter.push(Buffer.from("0123456789"));
    expect(() => splitter.push(Buffer.from("0"))).toThrow(/longer than 10 bytes/);
  });
});
