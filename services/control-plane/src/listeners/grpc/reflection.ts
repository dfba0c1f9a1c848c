import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type * as grpc from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";

/** Server reflection, v1 and v1alpha, from the descriptors of the services: every file they import included. */
export function addReflection(server: grpc.Server, services: readonly DescService[]): void {
  const files = new Map<string, DescFile>();
  for (const service of services) collect(service.file, files);
  const fileDescriptorProtos = [...files.values()].map((file) => {
    const bytes = toBinary(FileDescriptorProtoSchema, file.proto);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  });
  // The package needs one entry that carries the files; what the entry itself describes is not looked at.
  const carrier = { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos };
  const reflection = new ReflectionService({ holdfast: carrier } as unknown as PackageDefinition);
  reflection.addToServer({
    addService: (definition, implementation) => server.addService(definition, withBackpressure(implementation)),
  });
}

function collect(file: DescFile, into: Map<string, DescFile>): void {
  if (into.has(file.name)) return;
  into.set(file.name, file);
  for (const dependency of file.dependencies) collect(dependency, into);
}

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];
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
