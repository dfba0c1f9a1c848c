import { type DescMessage, type DescMethod, type DescService, type Message, toBinary } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import {
  AttachExecutionResponseSchema,
  ExecuteInteractiveResponseSchema,
  ExecuteResponseSchema,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { type ReadFileResponse, ReadFileResponseSchema } from "@holdfast/api/holdfast/v1/file_pb";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { serveBidiStreaming } from "./bidi-streaming-call.ts";
import { serveClientStreaming } from "./client-streaming-call.ts";
import { encodeReadFileResponse } from "./file-encoder.ts";
import { type CommandEvent, encodeCommandEvent } from "./output-encoder.ts";
import { readRequest } from "./request-reader.ts";
import { serveServerStreaming } from "./server-streaming-call.ts";
import { serveUnary } from "./unary-call.ts";

/** A service of ours as grpc-js takes it: built from the descriptors alone. */
export interface GrpcService {
  readonly definition: grpc.ServiceDefinition;
  readonly implementation: grpc.UntypedServiceImplementation;
}

/** Mounts served methods of one service on grpc-js. */
export function grpcServiceOf(
  service: DescService,
  methods: readonly ServedMethod[],
  forced: AbortSignal,
): GrpcService {
  const definition: Record<string, grpc.MethodDefinition<Incoming, Message>> = {};
  const implementation: grpc.UntypedServiceImplementation = {};
  for (const method of methods) {
    const { descriptor } = method;
    definition[descriptor.name] = definitionOf(service, descriptor);
    implementation[descriptor.name] = handlerOf(method, forced);
  }
  return { definition, implementation };
}

function handlerOf(method: ServedMethod, forced: AbortSignal): grpc.UntypedHandleCall {
  switch (method.kind) {
    case "unary":
      return serveUnary(method, forced);
    case "server_streaming":
      return serveServerStreaming(method, forced);
    case "client_streaming":
      return serveClientStreaming(method, forced);
    case "bidi_streaming":
      return serveBidiStreaming(method, forced);
  }
}

function definitionOf(service: DescService, method: DescMethod): grpc.MethodDefinition<Incoming, Message> {
  return {
    path: `/${service.typeName}/${method.name}`,
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestDeserialize: (bytes) => readRequest(method.input, bytes),
    responseSerialize: serializerOf(method.output),
    // Never called on a server.
    requestSerialize: () => Buffer.alloc(0),
    responseDeserialize: () => ({ $typeName: method.output.typeName }),
  };
}

const commandStreams: readonly DescMessage[] = [
  ExecuteResponseSchema,
  ExecuteInteractiveResponseSchema,
  AttachExecutionResponseSchema,
];

/** grpc-js sends what it is given: every message goes through the general encoder but those that carry bulk. */
function serializerOf(schema: DescMessage): (message: Message) => Buffer {
  if (commandStreams.includes(schema)) return (message) => encodeCommandEvent(schema, message as CommandEvent);
  if (schema === ReadFileResponseSchema) return (message) => encodeReadFileResponse(message as ReadFileResponse);
  return (message) => bufferOf(toBinary(schema, message));
}

/** grpc-js copies with Buffer's own methods, so that a plain Uint8Array ends the call with INTERNAL. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
