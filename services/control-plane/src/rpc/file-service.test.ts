import { randomBytes } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import { FileChangeKind, FileService, FileType, type ReadFileResponse } from "@holdfast/api/holdfast/v1/file_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { fileBatchMax, fileChunkMaxBytes, requestMaxBytes } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { type Stage, silence, stage, workspaceId } from "@holdfast/testkit";
import type { FileInfo } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decodeError, wireErrorOf } from "../listeners/grpc/grpc-client.testing.ts";
import { listenWith } from "../listeners/grpc/test-listener.testing.ts";
import { Watching } from "../watching.ts";
import { fileService } from "./file-service.ts";
import { workspaceService } from "./workspace-service.ts";

const files = FileService.method;
const id = workspaceId("demo");

let on: Stage;
let server: Awaited<ReturnType<typeof listenWith>>;

beforeEach(async () => {
  on = stage();
  const watching = new Watching(on.deps);
  const { registry } = watching;
  server = await listenWith({ workspaces: workspaceService(registry, watching), files: fileService(registry) });
  await server.client.unary(WorkspaceService.method.openWorkspace, { workspaceId: id });
});
afterEach(() => server[Symbol.asyncDispose]());

function guest() {
  const [pod] = on.cluster.pods(id);
  if (!pod) throw new Error("no pod");
  return on.guests.agent(pod.uid).files;
}

const startOf = (path: string, more: object = {}) => ({
  part: { case: "start" as const, value: { workspaceId: id, path, ...more } },
});
const dataOf = (bytes: Uint8Array) => ({ part: { case: "data" as const, value: bytes } });

/** Writes with one request after the other, and half-closes. */
function write(...requests: object[]) {
  const upload = server.client.upload(files.writeFile);
  for (const request of requests) upload.call.write(request);
  upload.call.end();
  return upload;
}

function collect<Response>(call: grpc.ClientReadableStream<Response>) {
  const responses: Response[] = [];
  return new Promise<{ responses: Response[]; error: grpc.ServiceError | undefined }>((resolve) => {
    call.on("data", (response: Response) => responses.push(response));
    call.on("error", (error) => resolve({ responses, error: error as grpc.ServiceError }));
    call.on("end", () => resolve({ responses, error: undefined }));
  });
}

async function read(path: string, range: object = {}) {
  const { responses, error } = await collect(server.client.stream(files.readFile, { workspaceId: id, path, ...range }));
  const chunks = (responses as ReadFileResponse[]).flatMap(({ event }) =>
    event.case === "chunk" ? [event.value] : [],
  );
  return { events: responses, chunks, content: Buffer.concat(chunks.map(({ data }) => data)), error };
}

const missing = (path: string) =>
  wireErrorOf(server.client.unary(files.statFile, { workspaceId: id, path })).then(({ reason }) => reason);

describe("ReadFile and WriteFile", () => {
  it("B60 give back what was written, byte for byte, in chunks of at most 64 KiB", async () => {
    const everyByte = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    const large = randomBytes(3 * 1024 * 1024 + 17);
    for (const content of [Buffer.alloc(0), everyByte, large]) {
      const parts = [];
      for (let at = 0; at < content.length; at += 1_000_000) parts.push(dataOf(content.subarray(at, at + 1_000_000)));
      const written = await write(startOf("f", { size: BigInt(content.length) }), ...parts);
      expect(written.file).toMatchObject({ path: "f", size: BigInt(content.length), type: FileType.REGULAR });
      const back = await read("f");
      expect(back.error).toBeUndefined();
      expect(back.content.equals(content)).toBe(true);
      expect(back.events[0]).toMatchObject({ event: { case: "opened", value: { path: "f" } } });
      let next = 0n;
      for (const { offset, data } of back.chunks) {
        expect(offset).toBe(next);
        expect(data.length).toBeLessThanOrEqual(fileChunkMaxBytes);
        next += BigInt(data.length);
      }
    }
  });

  it("pass ranges on, a length of 0 too, and numbers beyond exact ones as the largest", async () => {
    await write(startOf("f"), dataOf(Buffer.from("0123456789")));
    expect((await read("f", { offset: 3n, length: 4n })).content.toString()).toBe("3456");
    expect((await read("f", { offset: 10n })).content.toString()).toBe("");
    expect((await read("f", { length: 0n })).chunks).toEqual([]);
    expect((await read("f", { length: 2n ** 64n - 1n })).content.toString()).toBe("0123456789");
    const { error } = await read("f", { offset: 2n ** 64n - 1n });
    expect(error && decodeError(error)).toMatchObject({
      code: grpc.status.OUT_OF_RANGE,
      reason: "OFFSET_OUT_OF_RANGE",
    });
  });

  it.each<[string, object[], RegExp]>([
    ["no start", [], /sent nothing/],
    ["data before start", [dataOf(Buffer.from("x")), startOf("f")], /`data` came before/],
    ["a second start", [startOf("f"), dataOf(Buffer.from("x")), startOf("f")], /came twice/],
    ["a part that is none", [startOf("f"), {}], /part/],
    ["a path with a NUL", [startOf("a\0b")], /path/],
    ["another size than was said", [startOf("f", { size: 3n }), dataOf(Buffer.from("x"))], /./],
  ])("write nothing for %s", async (_, requests, said) => {
    await write(startOf("f"), dataOf(Buffer.from("old")));
    const error = await wireErrorOf(write(...requests));
    expect(error).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, reason: "INVALID_REQUEST" });
    expect(error.message).toMatch(said);
    expect((await read("f")).content.toString()).toBe("old");
  });

  it("leave the old file when the client goes away midway", async () => {
    await write(startOf("f"), dataOf(Buffer.from("old")));
    const upload = server.client.upload(files.writeFile);
    const failed = wireErrorOf(upload);
    upload.call.write(startOf("f"));
    upload.call.write(dataOf(Buffer.from("new")));
    await expect.poll(() => on.guests.count("files")).toBe(2);
    upload.call.cancel();
    await failed;
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect((await read("f")).content.toString()).toBe("old");
  });

  it("let a refusal of the guest reach a client that is still sending", async () => {
    guest().write = async () => {
      throw new HoldfastError("DISK_FULL", { message: "full", metadata: { path: "f" } });
    };
    const upload = server.client.upload(files.writeFile);
    upload.call.write(startOf("f"));
    upload.call.write(dataOf(Buffer.alloc(1000)));
    expect(await wireErrorOf(upload)).toMatchObject({
      code: grpc.status.RESOURCE_EXHAUSTED,
      reason: "DISK_FULL",
      metadata: { operation: "WriteFile", workspace_id: id, path: "f" },
    });
  });

  it("keep modes and conditions: mode, if_absent, if_unchanged, make_parents", async () => {
    const made = await write(startOf("a/b/f", { makeParents: true, mode: 0o600, ifAbsent: true }));
    expect(made.file?.mode).toBe(0o600);
    expect((await wireErrorOf(write(startOf("a/b/f", { ifAbsent: true })))).reason).toBe("FILE_EXISTS");
    expect((await wireErrorOf(write(startOf("a/b/f", { ifUnchanged: "other" })))).reason).toBe("FILE_CHANGED");
    const again = await write(startOf("a/b/f", { ifUnchanged: made.file?.etag }), dataOf(Buffer.from("x")));
    expect(again.file).toMatchObject({ mode: 0o600, size: 1n });
    expect((await wireErrorOf(write(startOf("no/where")))).reason).toBe("FILE_NOT_FOUND");
  });

  it("PutFile is a write of one message, checked by its own size", async () => {
    const start = startOf("f").part.value;
    const put = await server.client.unary(files.putFile, { start, data: Buffer.from([0, 255]) });
    expect(put.file?.size).toBe(2n);
    expect([...(await read("f")).content]).toEqual([0, 255]);
    const missized = await wireErrorOf(
      server.client.unary(files.putFile, { start: { ...start, size: 3n }, data: Buffer.from([1]) }),
    );
    expect(missized.reason).toBe("INVALID_REQUEST");
    const startless = await wireErrorOf(server.client.unary(files.putFile, { data: Buffer.from([1]) }));
    expect(startless).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "start" } });
    const fenced = await wireErrorOf(server.client.unary(files.putFile, { start: { ...start, epoch: 1n } }));
    expect(fenced).toMatchObject({ reason: "HOLDER_EPOCH_NOT_TAKEN", metadata: { mine: "1", stored: "0" } });
  });

  it("end in a drain: not written while the content was still coming, unknown once it was sent", async () => {
    await write(startOf("f"), dataOf(Buffer.from("old")));
    const coming = server.client.upload(files.writeFile);
    const notWritten = wireErrorOf(coming);
    coming.call.write(startOf("f"));
    coming.call.write(dataOf(Buffer.from("new")));
    const { write: really } = guest();
    const held = Promise.withResolvers<void>();
    guest().write = async (wish, content, signal) => {
      const written = await really.call(guest(), wish, content, signal);
      held.resolve();
      await silence({ signal });
      return written;
    };
    await expect.poll(() => on.guests.count("files")).toBe(2);
    const unknown = wireErrorOf(write(startOf("g"), dataOf(Buffer.from("sent"))));
    await held.promise;
    const idle = server.admission.drain();
    server.admission.endUnary();
    expect(await notWritten).toMatchObject({
      reason: "SERVICE_DRAINING",
      message: expect.stringContaining("stands as it was"),
    });
    expect(await unknown).toMatchObject({
      code: grpc.status.UNKNOWN,
      reason: "FILE_OUTCOME_UNKNOWN",
      metadata: { path: "g", why: "service_draining" },
    });
    await idle;
    expect(await guest().stat("f", {} as never)).toMatchObject({ sizeBytes: 3 });
  });
});

describe("the other calls on files", () => {
  it("stat, make, move, remove, and present what stands", async () => {
    const { file } = await server.client.unary(files.makeDirectory, {
      workspaceId: id,
      path: "a/b",
      makeParents: true,
    });
    expect(file).toMatchObject({ path: "a/b", type: FileType.DIRECTORY, mode: 0o755, etag: "" });
    await write(startOf("a/f"), dataOf(Buffer.from("x")));
    const moved = await server.client.unary(files.moveFile, { workspaceId: id, from: "a/f", to: "a/b/g" });
    expect(moved.file).toMatchObject({
      path: "a/b/g",
      size: 1n,
      type: FileType.REGULAR,
      etag: expect.stringMatching(/./),
    });
    const kept = await wireErrorOf(server.client.unary(files.removeFile, { workspaceId: id, path: "a" }));
    expect(kept).toMatchObject({ code: grpc.status.FAILED_PRECONDITION, reason: "DIRECTORY_NOT_EMPTY" });
    await server.client.unary(files.removeFile, { workspaceId: id, path: "a", recursive: true });
    expect(await missing("a/b/g")).toBe("FILE_NOT_FOUND");
  });

  it("B52 list in batches that any client takes: of 500, and of less than 4 MiB however long the names", async () => {
    const entry = (at: number, path: string): FileInfo => ({
      path,
      rawName: at === 0 ? Uint8Array.of(0xff, 0xfe) : undefined,
      type: "symlink",
      sizeBytes: at,
      mode: 0o777,
      modifiedAtMs: 1_500,
      etag: undefined,
      linkTarget: "ü".repeat(2_000),
    });
    guest().list = async function* () {
      yield Array.from({ length: 1_203 }, (_, at) => entry(at, `d/${at}`));
      yield [];
      yield Array.from({ length: 400 }, (_, at) => entry(at, "ü".repeat(2_040) + at));
    };
    const { responses, error } = await collect(
      server.client.stream(files.listDirectory, { workspaceId: id, path: "d" }),
    );
    expect(error).toBeUndefined();
    const sizes = responses.map((response) => response.files.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1_603);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(fileBatchMax);
    expect(Math.min(...sizes)).toBeGreaterThan(0);
    expect(responses[0]?.files[0]).toMatchObject({
      type: FileType.SYMLINK,
      modifiedAt: { seconds: 1n, nanos: 500_000_000 },
    });
    expect([...(responses[0]?.files[0]?.rawName ?? [])]).toEqual([0xff, 0xfe]);
  });

  it("B52 walk to a named limit, with the default where none is asked for", async () => {
    const limits: (number | undefined)[][] = [];
    guest().walk = async function* ({ maxVisited, maxDepth, maxEntries }) {
      limits.push([maxVisited, maxDepth, maxEntries]);
      yield [];
      throw new HoldfastError("WALK_LIMIT", { message: "enough", metadata: { limit: String(maxVisited) } });
    };
    for (const more of [{}, { maxVisited: 5n, maxDepth: 2, maxEntries: 7n }]) {
      const { error } = await collect(server.client.stream(files.walkFiles, { workspaceId: id, ...more }));
      expect(error && decodeError(error)).toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED, reason: "WALK_LIMIT" });
    }
    expect(limits).toEqual([
      [1_000_000, undefined, undefined],
      [5, 2, 7],
    ]);
  });

  it("watch: what happens, what was lost, and let go with the client", async () => {
    const call = server.client.stream(files.watchDirectory, { workspaceId: id, path: "", recursive: true });
    const seen: unknown[] = [];
    call.on("error", () => undefined);
    call.on("data", ({ event }) => seen.push(event));
    await expect.poll(() => seen.length).toBe(1);
    await write(startOf("f"));
    await write(startOf("f"), dataOf(Buffer.from("x")));
    await server.client.unary(files.removeFile, { workspaceId: id, path: "f" });
    await expect
      .poll(() => seen)
      .toMatchObject([
        { case: "watching", value: { directories: 1 } },
        { case: "change", value: { kind: FileChangeKind.CREATED, path: "f" } },
        { case: "change", value: { kind: FileChangeKind.MODIFIED, path: "f" } },
        { case: "change", value: { kind: FileChangeKind.REMOVED, path: "f" } },
      ]);
    call.cancel();
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("adopt a workspace that runs, silently, and wake none", async () => {
    await server.client.unary(WorkspaceService.method.closeWorkspace, { workspaceId: id });
    await write(startOf("f"), dataOf(Buffer.from("x")));
    await server.client.unary(WorkspaceService.method.suspendWorkspace, { workspaceId: id });
    const before = on.guests.calls.length;
    const refused = await Promise.all([missing("f"), wireErrorOf(write(startOf("f"))).then(({ reason }) => reason)]);
    expect(refused).toEqual(["WORKSPACE_SUSPENDED", "WORKSPACE_SUSPENDED"]);
    expect(on.guests.calls).toHaveLength(before);
  });

  it("refuse a message that is too large by name", async () => {
    const upload = server.client.upload(files.writeFile);
    upload.call.write(startOf("f"));
    upload.call.write(Buffer.alloc(requestMaxBytes + 1));
    expect((await wireErrorOf(upload)).reason).toBe("MESSAGE_TOO_LARGE");
    expect(await missing("f")).toBe("FILE_NOT_FOUND");
  });
});
