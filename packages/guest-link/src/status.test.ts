import { toBinary } from "@bufbuild/protobuf";
import { StatusSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { describe, expect, it } from "vitest";
import { AnsweredError } from "./link-errors.ts";
import { statusOf } from "./status.ts";

describe("an answer that quotes what it refuses", () => {
  it("fits a frame however long that is, and keeps its beginning and its end", () => {
    const long = "\u{1f600}".repeat(1_000_000);
    const status = statusOf(
      new AnsweredError("INVALID_REQUEST", `Refused: ${long}. Nothing was done.`, { path: long }),
    );
    expect(toBinary(StatusSchema, status).length).toBeLessThan(16 * 1024);
    expect(status.message).toMatch(/^Refused: .*characters left out.*Nothing was done\.$/);
    expect(status.metadata.path).toContain("characters left out");
    expect(status.message.isWellFormed()).toBe(true);
  });

  it("is a defect's as well", () => {
    expect(statusOf(new Error("x".repeat(5_000_000))).message.length).toBeLessThan(4_096);
  });

  it("is left as it is when it is short", () => {
    const { message, metadata } = statusOf(new AnsweredError("INVALID_REQUEST", "y".repeat(4_096), { a: "b" }));
    expect([message, metadata]).toEqual(["y".repeat(4_096), { a: "b" }]);
  });
});
