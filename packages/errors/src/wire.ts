import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { type Status, StatusSchema } from "@holdfast/api/google/rpc/status_pb";
import { errorDomain, type Reason, reasons, retryAfterMs } from "@holdfast/contract";
import { grpcCodes } from "./grpc-codes.ts";
import { HoldfastError } from "./holdfast-error.ts";

/** The error as `google.rpc.Status`: ErrorInfo always, RetryInfo where a retry helps, BadRequest with every violation. */
export function toStatus(error: HoldfastError): Status {
  const info = create(ErrorInfoSchema, { reason: error.reason, domain: errorDomain, metadata: { ...error.metadata } });
  const details = [anyPack(ErrorInfoSchema, info)];
  const retryMs = retryAfterMs[error.reason];
  if (retryMs !== undefined) {
    const retryDelay = { seconds: BigInt(Math.floor(retryMs / 1000)), nanos: (retryMs % 1000) * 1_000_000 };
    details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
  }
  if (error.violations.length > 0) {
    const fieldViolations = error.violations.map(({ field, description }) => ({ field, description }));
    details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations })));
  }
  return create(StatusSchema, { code: grpcCodes[error.status], message: error.message, details });
}

/** The bytes of the `grpc-status-details-bin` trailer. */
export function toStatusBytes(error: HoldfastError): Uint8Array {
  return toBinary(StatusSchema, toStatus(error));
}

/** The error that a status carries; undefined when it is not one of this domain and catalogue. */
export function fromStatus(status: Status): HoldfastError | undefined {
  for (const detail of status.details) {
    const info = anyUnpack(detail, ErrorInfoSchema);
    if (info?.domain !== errorDomain || !isReason(info.reason)) continue;
    const violations = status.details.flatMap((other) => anyUnpack(other, BadRequestSchema)?.fieldViolations ?? []);
    return new HoldfastError(info.reason, { message: status.message, metadata: info.metadata, violations });
  }
  return undefined;
}

function isReason(text: string): text is Reason {
  return Object.hasOwn(reasons, text);
}
