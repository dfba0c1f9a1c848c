import {
  create,
  type DescMessage,
  type DescMethod,
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
    };

/** Binds the handlers of a service to its descriptors. */
export function mountService<Service extends DescService>(
  service: Service,
  implementation: ServiceImplementation<Service>,
): MountedMethod[] {
  // Each handler takes exactly its own method's input: the mapped type above has checked it.
  const handlers = implementation as unknown as Record<string, (request: Message, context: HandlerContext) => never>;
  return service.methods.map((descriptor) => {
    const handler = handlers[descriptor.localName];
    if (!handler) throw new Error(`no handler for ${service.typeName}.${descriptor.name}`);
    const call = handler.bind(implementation);
    if (descriptor.methodKind === "unary") return { kind: "unary", descriptor, handle: mountUnary(descriptor, call) };
    if (descriptor.methodKind === "server_streaming") {
      return { kind: "server_streaming", descriptor, handle: mountServerStreaming(descriptor, call) };
    }
    throw new Error(`${service.typeName}.${descriptor.name}: ${descriptor.methodKind} methods are not served`);
  });
}

type Init = MessageInitShape<DescMessage>;

function mountUnary(
  descriptor: DescMethod,
  call: (request: Message, context: HandlerContext) => Promise<Init>,
): (request: Message, context: HandlerContext) => Promise<Message> {
  return async (request, context) => create(descriptor.output, await call(request, context));
}

function mountServerStreaming(
  descriptor: DescMethod,
  call: (request: Message, context: HandlerContext) => AsyncIterable<Init>,
): (request: Message, context: HandlerContext) => AsyncIterable<Message> {
  return async function* (request, context) {
    for await (const response of call(request, context)) yield create(descriptor.output, response);
  };
}
