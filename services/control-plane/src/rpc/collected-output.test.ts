import { describe, expect, it } from "vitest";
import { CollectedOutput } from "./collected-output.ts";

const output = (stream: "stdout" | "stderr", offset: number, text: string) =>
  ({ t: "output", stream, offset, data: Buffer.from(text) }) as const;
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe("collected output", () => {
  it("keeps each stream's first bytes, and says where more was written", () => {
    const collected = new CollectedOutput(5);
    collected.add(output("stdout", 0, "abc"));
    collected.add(output("stderr", 3, "12345"));
    collected.add(output("stdout", 8, "defg"));
    collected.add(output("stdout", 12, "h"));
    const { stdout, stderr, stdoutTruncated, stderrTruncated } = collected.result();
    expect([textOf(stdout), textOf(stderr)]).toEqual(["abcde", "12345"]);
    expect([stdoutTruncated, stderrTruncated]).toEqual([true, false]);
  });

  it("joins nothing across a gap: what comes after it is not the first bytes", () => {
    const collected = new CollectedOutput(100);
    collected.add(output("stdout", 0, "abc"));
    collected.add({ t: "gap", from: 3, to: 9, reason: "dropped" });
    collected.add(output("stdout", 9, "xyz"));
    const { stdout, stdoutTruncated, stderrTruncated } = collected.result();
    expect(textOf(stdout)).toBe("abc");
    expect([stdoutTruncated, stderrTruncated]).toEqual([true, true]);
  });

  it("holds on to no buffer that it was given", () => {
    const collected = new CollectedOutput(10);
    const data = Buffer.from("abc");
    collected.add({ t: "output", stream: "stdout", offset: 0, data });
    data.fill("z");
    expect(textOf(collected.result().stdout)).toBe("abc");
  });
});
