import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type * as grpc from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { file_google_rpc_error_details } from "@holdfast/api/google/rpc/error_details_pb";
import { service as healthDefinition } from "grpc-health-check";
import { withAbsoluteTypeNames } from "./absolute-type-names.ts";

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

/** Server reflection, v1 and v1alpha: of the services, of health and of reflection itself, with every file that they import. */
export function addReflection(server: grpc.Server, services: readonly DescService[]): void {
  const files = [...filesOf(services), ...filesOfDefinition(healthDefinition), ...filesOfReflection()];
  // The package needs one entry that carries the files; what the entry itself describes is not looked at.
  const carrier = { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos: files };
  new ReflectionService({ carrier } as unknown as PackageDefinition).addToServer({
    addService: (definition, implementation) => server.addService(definition, withBackpressure(implementation)),
  });
}

function filesOf(services: readonly DescService[]): Buffer[] {
  const found = new Map<string, DescFile>();
  const collect = (file: DescFile): void => {
    if (found.has(file.name)) return;
    found.set(file.name, file);
    for (const dependency of file.dependencies) collect(dependency);
  };
  for (const service of services) collect(service.file);
  // What errors carry is imported by no service, and grpcurl asks for it to show a reason.
  collect(file_google_rpc_error_details);
  return [...found.values()].map(({ proto }) => {
    const bytes = toBinary(FileDescriptorProtoSchema, proto);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  });
}

/** proto-loader hangs the files of a definition onto the types of its methods. */
function filesOfDefinition(definition: object): Buffer[] {
  const methods = Object.values(definition) as { requestType?: { fileDescriptorProtos?: Buffer[] } }[];
  return methods.flatMap(({ requestType }) => (requestType?.fileDescriptorProtos ?? []).map(withAbsoluteTypeNames));
}

/** Reflection shows its own definitions only when it is mounted: it is mounted on nothing, once. */
function filesOfReflection(): Buffer[] {
  const files: Buffer[] = [];
  new ReflectionService({}).addToServer({
    addService: (definition) => void files.push(...filesOfDefinition(definition)),
  });
  return files;
}

type Bidi = grpc.ServerDuplexStream<unknown, unknown>;

/** The library answers as fast as it is asked, whether or not the client reads: asked only when there is room, its memory is bounded. */
function withBackpressure(implementation: grpc.UntypedServiceImplementation): grpc.UntypedServiceImplementation {
  const wrapped: grpc.UntypedServiceImplementation = {};
  for (const [name, handler] of Object.entries(implementation)) {
    wrapped[name] = (call: Bidi) => {
      let answer: ((message: unknown) => void) | undefined;
      const facade = {
        on(event: string, listener: (message: unknown) => void) {
          if (event === "data") answer = listener;
          return facade;
        },
        write: (message: unknown) => call.write(message),
        end: () => call.end(),
      };
      (handler as grpc.handleBidiStreamingCall<unknown, unknown>)(facade as unknown as Bidi);
      call.on("data", (message: unknown) => {
        answer?.(message);
        if (call.writableNeedDrain) call.pause();
      });
      call.on("drain", () => call.resume());
      call.on("end", () => call.end());
    };
  }
  return wrapped;
}
