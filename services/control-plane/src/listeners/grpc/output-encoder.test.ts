import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import {
  AttachExecutionResponseSchema,
  ExecuteInteractiveResponseSchema,
  ExecuteResponseSchema,
  OutputStream,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { outputChunkMaxBytes } from "@holdfast/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CommandEvent, encodeCommandEvent } from "./output-encoder.ts";

describe("output laid by hand", () => {
  it("is byte for byte what the general encoder makes", () => {
    const stream = fc.constantFrom(OutputStream.UNSPECIFIED, OutputStream.STDOUT, OutputStream.STDERR);
    const offset = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    const data = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.nat(outputChunkMaxBytes).map((size) => new Uint8Array(size)),
    );
    fc.assert(
      fc.property(stream, offset, data, (stream, offset, data) => {
        const event = { case: "output" as const, value: { stream, offset, data } };
        for (const schema of [ExecuteResponseSchema, ExecuteInteractiveResponseSchema, AttachExecutionResponseSchema]) {
          const response = create<DescMessage>(schema, { event }) as CommandEvent;
          expect(encodeCommandEvent(schema, response).equals(toBinary<DescMessage>(schema, response))).toBe(true);
        }
      }),
    );
  });

  it("leaves every other event to the general encoder", () => {
    const response = create(ExecuteResponseSchema, { event: { case: "started", value: { executionId: "e" } } });
    expect(encodeCommandEvent(ExecuteResponseSchema, response).equals(toBinary(ExecuteResponseSchema, response))).toBe(
      true,
    );
  });
});
