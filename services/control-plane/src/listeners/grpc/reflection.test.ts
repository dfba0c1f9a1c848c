import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type * as grpc from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import type { TestClient } from "./grpc-client.testing.ts";
import { framed, RawClient } from "./raw-http2.testing.ts";
import { listenWith } from "./test-listener.testing.ts";

/** Numbers of grpc.reflection's messages, the same in v1 and v1alpha. */
const listServices = 7;
const fileByFilename = 3;
const fileContainingSymbol = 4;
const fileDescriptorResponse = 4;
const listServicesResponse = 6;

function ask(client: TestClient, version: string): grpc.ClientDuplexStream<Buffer, Buffer> {
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  return client.grpc.makeBidiStreamRequest(
    path,
    (bytes: Buffer) => bytes,
    (bytes) => bytes,
  );
}

const question = (field: number, text: string) => Buffer.from(new BinaryWriter().tag(field, 2).string(text).finish());

async function answerTo(client: TestClient, version: string, field: number, text: string): Promise<Buffer> {
  const call = ask(client, version);
  const answer = new Promise<Buffer>((resolve, reject) => call.once("data", resolve).once("error", reject));
  call.end(question(field, text));
  return answer;
}

/** The values of one length-delimited field. */
function fieldsOf(bytes: Uint8Array, wanted: number): Uint8Array[] {
  const reader = new BinaryReader(bytes);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === wanted) found.push(reader.bytes());
    else reader.skip(wireType, field);
  }
  return found;
}

const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString("utf8");

describe.each(["v1", "v1alpha"])("reflection %s", (version) => {
  it("lists our services, health and reflection itself", async () => {
    await using server = await listenWith({});
    const [list] = fieldsOf(await answerTo(server.client, version, listServices, "*"), listServicesResponse);
    const names = fieldsOf(list ?? new Uint8Array(), 1).map((service) => text(fieldsOf(service, 1)[0]));
    expect(names.sort()).toEqual([
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "holdfast.v1.ExecutionService",
      "holdfast.v1.FileService",
      "holdfast.v1.InventoryService",
      "holdfast.v1.PortService",
      "holdfast.v1.SessionService",
      "holdfast.v1.WorkspaceService",
    ]);
  });

  it.each([
    "holdfast.v1.WorkspaceService",
    "holdfast.v1.ExecutionService",
    "holdfast.v1.FileService",
    "holdfast.v1.InventoryService",
    "grpc.health.v1.Health",
  ])("describes %s with every file that it needs", async (symbol) => {
    await using server = await listenWith({});
    const files = new Map<string, FileDescriptorProto>();
    const take = async (field: number, wanted: string): Promise<void> => {
      const [response] = fieldsOf(await answerTo(server.client, version, field, wanted), fileDescriptorResponse);
      for (const bytes of fieldsOf(response ?? new Uint8Array(), 1)) {
        const file = fromBinary(FileDescriptorProtoSchema, bytes);
        files.set(file.name, file);
      }
    };
    await take(fileContainingSymbol, symbol);
    // As grpcurl does: what a file imports and did not come with it is asked for by its name.
    for (const file of files.values()) {
      for (const name of file.dependency) if (!files.has(name)) await take(fileByFilename, name);
    }
    const registry = createFileRegistry(
      create(FileDescriptorSetSchema, { file: inDependencyOrder([...files.values()]) }),
    );
    expect(registry.getService(symbol)?.methods.length).toBeGreaterThan(0);
  });

  it("keeps what a field's presence is", async () => {
    await using server = await listenWith({});
    const answer = await answerTo(server.client, version, fileContainingSymbol, "holdfast.v1.ExecuteRequest");
    const [response] = fieldsOf(answer, fileDescriptorResponse);
    const files = fieldsOf(response ?? new Uint8Array(), 1).map((bytes) =>
      fromBinary(FileDescriptorProtoSchema, bytes),
    );
    const message = files.flatMap((file) => file.messageType).find(({ name }) => name === "ExecuteRequest");
    expect(message?.field.find(({ name }) => name === "epoch")?.proto3Optional).toBe(true);
  });
});

describe("reflection", () => {
  it("does not gather answers for a client that asks and does not read", async () => {
    await using server = await listenWith({});
    using raw = new RawClient(server.address);
    const call = raw.open("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    const asked = framed(question(fileContainingSymbol, "holdfast.v1.WorkspaceService"));
    const many = 10_000; // Some 18 KiB each: 180 MB if they were gathered.
    const before = process.memoryUsage().arrayBuffers;
    await new Promise<void>((resolve) =>
      call.write(Buffer.concat(Array.from({ length: many }, () => asked)), () => resolve()),
    );
    for (let round = 0; round < 5; round += 1) await new Promise<void>((resolve) => raw.session.ping(() => resolve()));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(30 * 1024 * 1024);
  });
});

/** Dependencies first, as a file registry wants them. */
function inDependencyOrder(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const byName = new Map(files.map((file) => [file.name, file]));
  const ordered = new Set<FileDescriptorProto>();
  const place = (file: FileDescriptorProto): void => {
    for (const name of file.dependency) {
      const dependency = byName.get(name);
      if (dependency && !ordered.has(dependency)) place(dependency);
    }
    ordered.add(file);
  };
  for (const file of files) place(file);
  return [...ordered];
}
