import * as grpc from "@grpc/grpc-js";
import { grpcCodes, type HoldfastError, toStatusBytes } from "@holdfast/errors";

/** The trailer that carries `google.rpc.Status`. */
export const statusDetailsTrailer = "grpc-status-details-bin";

/** The error as grpc-js sends it: code, message and the details trailer. */
export function grpcStatusOf(error: HoldfastError): grpc.StatusObject {
  const metadata = new grpc.Metadata();
  const bytes = toStatusBytes(error);
  metadata.set(statusDetailsTrailer, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return { code: grpcCodes[error.status], details: error.message, metadata };
}
