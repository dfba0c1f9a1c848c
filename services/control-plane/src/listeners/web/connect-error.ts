import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { requestMaxBytes } from "@holdfast/contract";
import { grpcCodes, HoldfastError, toStatus } from "@holdfast/errors";

const detailSchemas = [ErrorInfoSchema, RetryInfoSchema, BadRequestSchema];

/** The error as connect-node sends it, in whichever protocol: code, message and every detail. */
export function connectErrorOf(error: HoldfastError): ConnectError {
  const details = toStatus(error).details.flatMap((detail) =>
    detailSchemas.flatMap((desc) => {
      const value = anyUnpack(detail, desc);
      return value === undefined ? [] : [{ desc, value }];
    }),
  );
  // Connect's codes are gRPC's.
  return new ConnectError(error.message, grpcCodes[error.status] as Code, undefined, details);
}

/** The reason for what connect-node itself refuses before a handler runs; undefined where ours has none. */
export function reasonForRefusal({ code, rawMessage }: ConnectError): HoldfastError | undefined {
  // Internal: bytes that are no protobuf.
  if (code === Code.InvalidArgument || code === Code.Internal) {
    return new HoldfastError("INVALID_REQUEST", {
      message: `The call was not carried out: its request cannot be read (${rawMessage}).`,
    });
  }
  if (code === Code.ResourceExhausted) {
    return new HoldfastError("MESSAGE_TOO_LARGE", {
      message: `The call was not carried out: its request is larger than ${requestMaxBytes} bytes. Send less in one call.`,
      metadata: { limit: String(requestMaxBytes) },
    });
  }
  return undefined;
}
