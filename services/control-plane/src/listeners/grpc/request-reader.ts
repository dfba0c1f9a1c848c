import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/errors";
import type { Incoming } from "../../rpc/interceptors/call-pipeline.ts";

/** Decodes a request. Never throws: grpc-js would answer a throw with a bare INTERNAL. */
export function readRequest(schema: DescMessage, bytes: Uint8Array): Incoming {
  try {
    return { message: fromBinary(schema, bytes) };
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    return {
      unreadable: new HoldfastError("INVALID_REQUEST", {
        message: `The call was not carried out: its ${bytes.byteLength} bytes are no ${schema.typeName} (${said}).`,
        cause,
      }),
    };
  }
}
