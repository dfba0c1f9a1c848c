import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { create, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";

/** A gRPC client made of frames, which really stops reading when it is paused: grpc-js's goes on and gathers. */
export class RawClient implements Disposable {
  readonly session: ClientHttp2Session;

  constructor(address: string) {
    this.session = connect(`http://${address}`);
    this.session.on("error", () => undefined);
  }

  /** Opens a call, paused: nothing is read until somebody listens to its data. */
  open(path: string, headers: Record<string, string> = {}): ClientHttp2Stream {
    const stream = this.session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    stream.on("error", () => undefined);
    stream.pause();
    return stream;
  }

  /** Opens a call and sends its request. */
  call<Method extends DescMethod>(
    method: Method,
    request: MessageInitShape<Method["input"]>,
    headers: Record<string, string> = {},
  ): ClientHttp2Stream {
    const stream = this.open(`/${method.parent.typeName}/${method.name}`, headers);
    const message = create<Method["input"]>(method.input, request);
    stream.end(framed(toBinary<Method["input"]>(method.input, message)));
    return stream;
  }

  [Symbol.dispose](): void {
    this.session.destroy();
  }
}

/** A message with gRPC's five bytes before it. */
export function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}
