import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  create,
  createFileRegistry,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import {
  Client,
  type ClientDuplexStream,
  credentials,
  loadPackageDefinition,
  type ServiceClientConstructor,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

/** What reflection answers, as far as it is read here. */
interface ReflectionResponse {
  fileDescriptorResponse?: { fileDescriptorProto: Uint8Array[] };
  listServicesResponse?: { service: { name: string }[] };
  errorResponse?: { errorCode: number; errorMessage: string };
}

type ReflectionStream = ClientDuplexStream<object, ReflectionResponse>;

const protoDir = join(dirname(createRequire(import.meta.url).resolve("@grpc/reflection/package.json")), "build/proto");

/** A service known by nothing but its reflection: what grpcurl does, in Node. */
export class ReflectedService implements Disposable {
  readonly #target: string;
  readonly #calls: Client;
  readonly #version: "v1" | "v1alpha";

  constructor(target: string, version: "v1" | "v1alpha" = "v1") {
    this.#target = target;
    this.#version = version;
    this.#calls = new Client(target, credentials.createInsecure());
  }

  /** The names of all services. */
  async list(): Promise<string[]> {
    const response = await this.#ask({ listServices: "*" });
    return (response.listServicesResponse?.service ?? []).map((service) => service.name).sort();
  }

  /** Calls `package.Service/Method` with a request in JSON; resolves with every response in JSON. */
  async call(path: string, request: JsonValue): Promise<JsonValue[]> {
    const [serviceName = "", methodName = ""] = path.split("/");
    const registry = await this.#registryOf(serviceName);
    const method = registry.getService(serviceName)?.methods.find((one) => one.name === methodName);
    if (!method) throw new Error(`reflection knows no ${path}`);
    const bytes = toBinary(method.input, fromJson(method.input, request, { registry }));
    const stream = this.#calls.makeServerStreamRequest(
      `/${path}`,
      (value: Uint8Array) => Buffer.from(value),
      (value) => value,
      bytes,
    );
    const responses: JsonValue[] = [];
    for await (const response of stream)
      responses.push(toJson(method.output, fromBinary(method.output, response), { registry }));
    return responses;
  }

  /** True when a message of this name is described. */
  async knows(typeName: string): Promise<boolean> {
    try {
      return (await this.#registryOf(typeName)).getMessage(typeName) !== undefined;
    } catch {
      return false;
    }
  }

  async #registryOf(symbol: string): Promise<FileRegistry> {
    const files = new Map<string, ReturnType<typeof parseFile>>();
    const take = (response: ReflectionResponse): void => {
      for (const bytes of response.fileDescriptorResponse?.fileDescriptorProto ?? []) {
        const file = parseFile(bytes);
        files.set(file.name, file);
      }
    };
    take(await this.#ask({ fileContainingSymbol: symbol }));
    for (let missing = missingOf(files); missing.length > 0; missing = missingOf(files)) {
      for (const name of missing) take(await this.#ask({ fileByFilename: name }));
    }
    return createFileRegistry(create(FileDescriptorSetSchema, { file: sorted(files) }));
  }

  #ask(request: object): Promise<ReflectionResponse> {
    const definition = loadSync(`grpc/reflection/${this.#version}/reflection.proto`, { includeDirs: [protoDir] });
    const Reflection = serviceAt(loadPackageDefinition(definition), [
      "grpc",
      "reflection",
      this.#version,
      "ServerReflection",
    ]);
    const client = new Reflection(this.#target, credentials.createInsecure());
    const open = client.ServerReflectionInfo;
    if (!open) throw new Error("the reflection service has no ServerReflectionInfo");
    const stream: ReflectionStream = open.call(client);
    return new Promise<ReflectionResponse>((resolve, reject) => {
      stream.on("data", (response: ReflectionResponse) => {
        if (response.errorResponse)
          reject(new Error(`${JSON.stringify(request)}: ${response.errorResponse.errorMessage}`));
        else resolve(response);
        stream.end();
      });
      stream.on("error", reject);
      stream.write(request);
    }).finally(() => client.close());
  }

  [Symbol.dispose](): void {
    this.#calls.close();
  }
}

function serviceAt(tree: unknown, path: readonly string[]): ServiceClientConstructor {
  let node = tree;
  for (const name of path) node = (node as Record<string, unknown>)[name];
  return node as ServiceClientConstructor;
}

function parseFile(bytes: Uint8Array) {
  return fromBinary(FileDescriptorProtoSchema, bytes);
}

function missingOf(files: ReadonlyMap<string, ReturnType<typeof parseFile>>): string[] {
  return [...files.values()].flatMap((file) => file.dependency).filter((name) => !files.has(name));
}

/** Dependencies before dependents, as a registry wants them. */
function sorted(files: ReadonlyMap<string, ReturnType<typeof parseFile>>): ReturnType<typeof parseFile>[] {
  const done = new Set<string>();
  const result: ReturnType<typeof parseFile>[] = [];
  const visit = (name: string): void => {
    const file = files.get(name);
    if (!file || done.has(name)) return;
    done.add(name);
    file.dependency.forEach(visit);
    result.push(file);
  };
  for (const name of files.keys()) visit(name);
  return result;
}
