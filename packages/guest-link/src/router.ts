import {
  create,
  type DescMessage,
  type DescMethodBiDiStreaming,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { AnsweredError } from "./link-errors.ts";
import type { AgentStream } from "./stream-agent.ts";
import type { Upload } from "./upload.ts";

/** What a handler may know of its caller. */
export interface CallContext {
  /** The holder epoch that came with the call. */
  readonly epoch: bigint | undefined;
  /** Aborts when the caller gives up or its connection ends. */
  readonly signal: AbortSignal;
}

type UnaryRoute = (message: Uint8Array, context: CallContext) => Promise<Uint8Array>;
type StreamRoute = (message: Uint8Array, stream: AgentStream) => Promise<void>;

/** The full name of a method, as it travels. */
export function methodNameOf(method: {
  readonly parent: { readonly typeName: string };
  readonly name: string;
}): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** Throws when a call of this method may not be served under this epoch. Asked before anything of it is looked at. */
export type Admission = (method: string, epoch: bigint | undefined) => void;

/** The methods that an agent serves. */
export class Router {
  readonly #admit: Admission;
  readonly #unary = new Map<string, UnaryRoute>();
  readonly #stream = new Map<string, StreamRoute>();

  constructor(admit: Admission = () => undefined) {
    this.#admit = admit;
  }

  /** Serves a call. A failure other than AnsweredError is reported to the caller as a defect. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    handle: (request: MessageShape<I>, context: CallContext) => Promise<MessageInitShape<O>>,
  ): this {
    const name = methodNameOf(method);
    this.#unary.set(name, async (message, context) => {
      this.#admit(name, context.epoch);
      const response = await handle(parse(method.input, message), context);
      return toBinary(method.output, create(method.output, response));
    });
    return this;
  }

  /** Serves a stream. It ends, well or with the handler's failure, when the handler is done. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    handle: (request: MessageShape<I>, stream: AgentStream) => Promise<void>,
  ): this {
    const name = methodNameOf(method);
    this.#stream.set(name, (message, stream) => {
      this.#admit(name, stream.context.epoch);
      return handle(parse(method.input, message), stream); // Not awaited here: the message is let go, however long the stream lasts.
    });
    return this;
  }

  /** Serves a stream that carries bytes upwards: OPEN has the request, DATA and EOF the bytes, one message is the answer. */
  upload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    handle: (request: MessageShape<I>, upload: Upload, context: CallContext) => Promise<MessageInitShape<O>>,
  ): this {
    const name = methodNameOf(method);
    this.#stream.set(name, async (message, stream) => {
      const upload = stream.takeUpload(); // First: bytes may stand in the same packet as OPEN.
      this.#admit(name, stream.context.epoch);
      stream.sendMessage(method.output, await handle(parse(method.input, message), upload, stream.context));
    });
    return this;
  }

  /** Serves a stream that carries bytes both ways: OPEN has the request. It ends, well or with the handler's failure, when the handler is done. */
  tunnel<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
    handle: (request: MessageShape<I>, upload: Upload, stream: AgentStream) => Promise<void>,
  ): this {
    const name = methodNameOf(method);
    this.#stream.set(name, async (message, stream) => {
      const upload = stream.takeUpload(); // First: bytes may stand in the same packet as OPEN.
      this.#admit(name, stream.context.epoch);
      await handle(parse(method.input, message), upload, stream);
    });
    return this;
  }

  /** Runs the handler of a call. */
  async call(method: string, message: Uint8Array, context: CallContext): Promise<Uint8Array> {
    const route = this.#unary.get(method);
    if (route === undefined) throw notServed(method);
    return route(message, context);
  }

  /** Runs the handler of a stream. */
  async open(method: string, message: Uint8Array, stream: AgentStream): Promise<void> {
    const route = this.#stream.get(method);
    if (route === undefined) {
      stream.takeUpload(); // A newer caller may send bytes behind it: they are read and dropped, so that the answer arrives.
      throw notServed(method);
    }
    return route(message, stream);
  }
}

function parse<T extends DescMessage>(schema: T, message: Uint8Array): MessageShape<T> {
  try {
    return fromBinary(schema, message);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AnsweredError("INVALID_REQUEST", `The request is not a ${schema.typeName}: ${why}. Nothing was done.`);
  }
}

function notServed(method: string): AnsweredError {
  return new AnsweredError("GUEST_FEATURE_MISSING", `This guest does not serve ${method}. Nothing was done.`, {
    method,
  });
}
