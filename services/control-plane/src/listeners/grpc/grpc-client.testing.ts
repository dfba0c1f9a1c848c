import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { ErrorInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { type Status, StatusSchema } from "@holdfast/api/google/rpc/status_pb";
import { statusDetailsTrailer } from "./grpc-status.ts";

/** An ordinary grpc-js client of whatever the descriptors describe. */
export class TestClient implements Disposable {
  readonly grpc: grpc.Client;

  constructor(address: string, options: grpc.ClientOptions = {}) {
    this.grpc = new grpc.Client(address, grpc.credentials.createInsecure(), options);
  }

  unary<Method extends DescMethod>(
    method: Method,
    request: MessageInitShape<Method["input"]> | Buffer,
    options: grpc.CallOptions = {},
    metadata = new grpc.Metadata(),
  ): Promise<MessageShape<Method["output"]>> & { call: grpc.ClientUnaryCall } {
    let call: grpc.ClientUnaryCall | undefined;
    const promise = new Promise<MessageShape<Method["output"]>>((resolve, reject) => {
      call = this.grpc.makeUnaryRequest(
        pathOf(method),
        (bytes: Buffer) => bytes,
        (bytes) => fromBinary<Method["output"]>(method.output, bytes),
        bytesOf(method, request),
        metadata,
        options,
        (error, response) => (error || !response ? reject(error) : resolve(response)),
      );
    });
    if (!call) throw new Error("no call was made");
    return Object.assign(promise, { call });
  }

  stream<Method extends DescMethod>(
    method: Method,
    request: MessageInitShape<Method["input"]>,
    options: grpc.CallOptions = {},
  ): grpc.ClientReadableStream<MessageShape<Method["output"]>> {
    return this.grpc.makeServerStreamRequest(
      pathOf(method),
      (bytes: Buffer) => bytes,
      (bytes) => fromBinary<Method["output"]>(method.output, bytes),
      bytesOf(method, request),
      options,
    );
  }

  /** A client stream: write to `call`; the answer is the promise. */
  upload<Method extends DescMethod>(
    method: Method,
    options: grpc.CallOptions = {},
  ): Promise<MessageShape<Method["output"]>> & {
    call: grpc.ClientWritableStream<MessageInitShape<Method["input"]> | Buffer>;
  } {
    let call: grpc.ClientWritableStream<MessageInitShape<Method["input"]> | Buffer> | undefined;
    const promise = new Promise<MessageShape<Method["output"]>>((resolve, reject) => {
      call = this.grpc.makeClientStreamRequest(
        pathOf(method),
        (request: MessageInitShape<Method["input"]> | Buffer) => bytesOf(method, request),
        (bytes) => fromBinary<Method["output"]>(method.output, bytes),
        options,
        (error, response) => (error || !response ? reject(error) : resolve(response)),
      );
    });
    if (!call) throw new Error("no call was made");
    return Object.assign(promise, { call });
  }

  [Symbol.dispose](): void {
    this.grpc.close();
  }
}

/** What an error carried on the wire. */
export interface WireError {
  readonly code: number;
  readonly message: string;
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly status: Status | undefined;
}

/** Decodes a failed call; throws when it did not fail. */
export async function wireErrorOf(call: Promise<unknown>): Promise<WireError> {
  try {
    await call;
  } catch (error) {
    return decodeError(error as grpc.ServiceError);
  }
  throw new Error("the call succeeded");
}

export function decodeError(error: grpc.ServiceError): WireError {
  const bytes = error.metadata.get(statusDetailsTrailer)[0];
  const status = bytes instanceof Buffer ? fromBinary(StatusSchema, bytes) : undefined;
  const info = status?.details.map((detail) => anyUnpack(detail, ErrorInfoSchema)).find((found) => found !== undefined);
  return {
    code: error.code,
    message: error.details,
    reason: info?.reason,
    metadata: info?.metadata ?? {},
    status,
  };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function bytesOf<Method extends DescMethod>(
  method: Method,
  request: MessageInitShape<Method["input"]> | Buffer,
): Buffer {
  if (request instanceof Buffer) return request;
  const message = create<Method["input"]>(method.input, request as MessageInitShape<Method["input"]>);
  return Buffer.from(toBinary<Method["input"]>(method.input, message));
}
