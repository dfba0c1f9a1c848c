import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { HandlerContext } from "./call-context.ts";

type Handler<Method> =
  Method extends DescMethodUnary<infer I extends DescMessage, infer O extends DescMessage>
    ? (request: MessageShape<I>, context: HandlerContext) => Promise<MessageInitShape<O>>
    : Method extends DescMethodServerStreaming<infer I extends DescMessage, infer O extends DescMessage>
      ? (request: MessageShape<I>, context: HandlerContext) => AsyncIterable<MessageInitShape<O>>
      : Method extends DescMethodClientStreaming<infer I extends DescMessage, infer O extends DescMessage>
        ? (requests: AsyncIterable<MessageShape<I>>, context: HandlerContext) => Promise<MessageInitShape<O>>
        : Method extends DescMethodBiDiStreaming<infer I extends DescMessage, infer O extends DescMessage>
          ? (requests: AsyncIterable<MessageShape<I>>, context: HandlerContext) => AsyncIterable<MessageInitShape<O>>
          : never;

/** One handler per RPC of a service, by the RPC's local name. No listener's types are in it. */
export type ServiceImplementation<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: Handler<Service["method"][Name]>;
};

/** One RPC with its handler, the types of its messages erased: what interceptors wrap and listeners serve. */
export type MountedMethod<Context = HandlerContext> =
  | {
      readonly kind: "unary";
      readonly descriptor: DescMethod;
      readonly handle: (request: Message, context: Context) => Promise<Message>;
    }
  | {
      readonly kind: "server_streaming";
      readonly descriptor: DescMethod;
      readonly handle: (request: Message, context: Context) => AsyncIterable<Message>;
    }
  | {
      readonly kind: "client_streaming";
      readonly descriptor: DescMethod;
      /** Pulls requests as it can use them: what it does not pull holds the client back. They end at the client's half-close only. */
      readonly handle: (requests: AsyncIterable<Message>, context: Context) => Promise<Message>;
    }
  | {
      readonly kind: "bidi_streaming";
      readonly descriptor: DescMethod;
      /**
       * Pulls requests likewise, and yields responses as they are asked for. The call ends when the responses end, whatever the client
       * still sends; its half-close ends the requests only. A handler whose requests fail ends too.
       */
      readonly handle: (requests: AsyncIterable<Message>, context: Context) => AsyncIterable<Message>;
    };

/** Binds the handlers of a service to its descriptors. */
export function mountService<Service extends DescService>(
  service: Service,
  implementation: ServiceImplementation<Service>,
): MountedMethod[] {
  // Each handler takes exactly its own method's input: the mapped type above has checked it.
  const handlers = implementation as unknown as Record<string, (request: never, context: HandlerContext) => never>;
  return service.methods.map((descriptor) => {
    const handler = handlers[descriptor.localName];
    if (!handler) throw new Error(`no handler for ${service.typeName}.${descriptor.name}`);
    const call = <Request>(request: Request, context: HandlerContext): never =>
      handler.call(implementation, request as never, context);
    if (descriptor.methodKind === "unary") return { kind: "unary", descriptor, handle: mountUnary(descriptor, call) };
    if (descriptor.methodKind === "server_streaming") {
      return { kind: "server_streaming", descriptor, handle: mountStreaming(descriptor, call) };
    }
    if (descriptor.methodKind === "client_streaming") {
      return { kind: "client_streaming", descriptor, handle: mountUnary(descriptor, call) };
    }
    return { kind: "bidi_streaming", descriptor, handle: mountStreaming(descriptor, call) };
  });
}

type Init = MessageInitShape<DescMessage>;

/** One answer, to one request or to a stream of them. */
function mountUnary<Request>(
  descriptor: DescMethod,
  call: (request: Request, context: HandlerContext) => Promise<Init>,
): (request: Request, context: HandlerContext) => Promise<Message> {
  return async (request, context) => create(descriptor.output, await call(request, context));
}

/** A stream of answers, likewise. */
function mountStreaming<Request>(
  descriptor: DescMethod,
  call: (request: Request, context: HandlerContext) => AsyncIterable<Init>,
): (request: Request, context: HandlerContext) => AsyncIterable<Message> {
  return async function* (request, context) {
    for await (const response of call(request, context)) yield create(descriptor.output, response);
  };
}
