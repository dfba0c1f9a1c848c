import { create, type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import { StatusSchema } from "@holdfast/api/google/rpc/status_pb";

/** An ordinary grpc-js client, behind the interface of the other clients, so that one test speaks to all. */
export function createGrpcJsTransport(address: string): Transport & Disposable {
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.enable_retries": 0,
  });
  return {
    async unary(method, signal, timeoutMs, header, input) {
      const message = await new Promise<MessageShape<typeof method.output>>((resolve, reject) => {
        const call = client.makeUnaryRequest(
          pathOf(method),
          encoderOf(method.input),
          decoderOf(method.output),
          create(method.input, input),
          metadataOf(header),
          optionsOf(timeoutMs),
          (error, response) => (error || response === undefined ? reject(failureOf(error)) : resolve(response)),
        );
        cancelAt(signal, call);
      });
      return { stream: false, service: method.parent, method, header: new Headers(), trailer: new Headers(), message };
    },
    async stream(method, signal, timeoutMs, header, input) {
      const common = { service: method.parent, method, header: new Headers(), trailer: new Headers() };
      const path = pathOf(method);
      if (method.methodKind === "client_streaming") {
        const answered = new Promise<MessageShape<typeof method.output>>((resolve, reject) => {
          const call = client.makeClientStreamRequest(
            path,
            encoderOf(method.input),
            decoderOf(method.output),
            metadataOf(header),
            optionsOf(timeoutMs),
            (error, response) => (error || response === undefined ? reject(failureOf(error)) : resolve(response)),
          );
          cancelAt(signal, call);
          void send(call, method.input, input);
        });
        return { ...common, stream: true, message: once(answered) };
      }
      if (method.methodKind === "bidi_streaming") {
        const call = client.makeBidiStreamRequest(
          path,
          encoderOf(method.input),
          decoderOf(method.output),
          metadataOf(header),
          optionsOf(timeoutMs),
        );
        cancelAt(signal, call);
        void send(call, method.input, input);
        return { ...common, stream: true, message: messagesOf(call) };
      }
      const request = await firstOf(input);
      const call = client.makeServerStreamRequest(
        path,
        encoderOf(method.input),
        decoderOf(method.output),
        create(method.input, request),
        metadataOf(header),
        optionsOf(timeoutMs),
      );
      cancelAt(signal, call);
      return { ...common, stream: true, message: messagesOf(call) };
    },
    [Symbol.dispose]: () => client.close(),
  };
}

const pathOf = (method: DescMethod): string => `/${method.parent.typeName}/${method.name}`;

function encoderOf<Desc extends DescMessage>(desc: Desc): (message: MessageShape<Desc>) => Buffer {
  return (message) => Buffer.from(toBinary(desc, message));
}

function decoderOf<Desc extends DescMessage>(desc: Desc): (bytes: Buffer) => MessageShape<Desc> {
  return (bytes) => fromBinary(desc, bytes);
}

function metadataOf(header: ConstructorParameters<typeof Headers>[0]): grpc.Metadata {
  const metadata = new grpc.Metadata();
  new Headers(header).forEach((value, name) => {
    metadata.set(name, value);
  });
  return metadata;
}

function optionsOf(timeoutMs: number | undefined): grpc.CallOptions {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}

function cancelAt(signal: AbortSignal | undefined, call: { cancel(): void }): void {
  if (signal?.aborted) call.cancel();
  signal?.addEventListener("abort", () => call.cancel(), { once: true });
}

async function send<Desc extends DescMessage>(
  call: grpc.ClientWritableStream<MessageShape<Desc>>,
  desc: Desc,
  input: AsyncIterable<Parameters<typeof create<Desc>>[1]>,
): Promise<void> {
  try {
    for await (const part of input) {
      const room = call.write(create(desc, part));
      if (!room) await new Promise((resolve) => call.once("drain", resolve).once("close", resolve));
    }
    call.end();
  } catch {
    call.cancel();
  }
}

async function firstOf<T>(input: AsyncIterable<T>): Promise<T> {
  for await (const request of input) return request;
  throw new Error("no request");
}

async function* once<T>(promise: Promise<T>): AsyncGenerator<T> {
  yield await promise;
}

async function* messagesOf<T>(call: AsyncIterable<T> & { cancel(): void }): AsyncGenerator<T> {
  try {
    yield* call;
  } catch (error) {
    throw failureOf(error as grpc.ServiceError);
  } finally {
    call.cancel();
  }
}

function failureOf(error: grpc.ServiceError | null): ConnectError {
  if (!error) return new ConnectError("no answer");
  const failure = new ConnectError(error.details, error.code as number);
  const bytes = error.metadata.get("grpc-status-details-bin")[0];
  if (bytes instanceof Buffer) {
    failure.details = fromBinary(StatusSchema, bytes).details.map(({ typeUrl, value }) => ({
      type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
      value,
    }));
  }
  return failure;
}
