import { create, toBinary } from "@bufbuild/protobuf";
import { ReadFileResponseSchema } from "@holdfast/api/holdfast/v1/file_pb";
import { fileChunkMaxBytes } from "@holdfast/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeReadFileResponse } from "./file-encoder.ts";

describe("chunks of files laid by hand", () => {
  it("are byte for byte what the general encoder makes", () => {
    const offset = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    const data = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.nat(fileChunkMaxBytes).map((size) => new Uint8Array(size)),
    );
    fc.assert(
      fc.property(offset, data, (offset, data) => {
        const response = create(ReadFileResponseSchema, { event: { case: "chunk", value: { offset, data } } });
        expect(encodeReadFileResponse(response).equals(toBinary(ReadFileResponseSchema, response))).toBe(true);
      }),
    );
  });

  it("leave the opened file to the general encoder", () => {
    const response = create(ReadFileResponseSchema, { event: { case: "opened", value: { path: "p", size: 3n } } });
    expect(encodeReadFileResponse(response).equals(toBinary(ReadFileResponseSchema, response))).toBe(true);
  });
});
