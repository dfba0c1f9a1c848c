import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { FileService, type WriteFileRequest, WriteFileRequestSchema } from "@holdfast/api/holdfast/v1/file_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { receiveWindowBytes, requestMaxBytes } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import type { HandlerContext } from "../../rpc/call-context.ts";
import { type TestClient, wireErrorOf } from "./grpc-client.testing.ts";
import { framed, RawClient } from "./raw-http2.testing.ts";
import { listenWith } from "./test-listener.testing.ts";

const { writeFile } = FileService.method;
const { getWorkspace } = WorkspaceService.method;
const path = `/${FileService.typeName}/${writeFile.name}`;

const start = { part: { case: "start" as const, value: { workspaceId: "w", path: "f" } } };
const data = (bytes: Uint8Array) => ({ part: { case: "data" as const, value: bytes } });
const frame = (request: object) => framed(toBinary(WriteFileRequestSchema, create(WriteFileRequestSchema, request)));

type Upload = ReturnType<typeof TestClient.prototype.upload<typeof writeFile>>;

/** Writes as fast as the call takes it. */
async function send(upload: Upload, requests: Iterable<Parameters<Upload["call"]["write"]>[0]>): Promise<void> {
  for (const request of requests) {
    if (!upload.call.write(request)) await new Promise<void>((resolve) => upload.call.once("drain", resolve));
  }
  upload.call.end();
}

/** A handler that hashes what it gets, in the order it gets it; its answer carries hash and size. */
async function hashing(requests: AsyncIterable<WriteFileRequest>) {
  const hash = createHash("sha256");
  let size = 0;
  for await (const { part } of requests) {
    if (part.case !== "data") continue;
    hash.update(part.value);
    size += part.value.byteLength;
  }
  return { file: { path: hash.digest("hex"), size: BigInt(size) } };
}

/** A handler whose ending a test can await. */
function recorded(handler: (requests: AsyncIterable<WriteFileRequest>, context: HandlerContext) => Promise<object>) {
  const ended = Promise.withResolvers<unknown>();
  const entered = Promise.withResolvers<HandlerContext>();
  return {
    ended: ended.promise,
    entered: entered.promise,
    writeFile: async (requests: AsyncIterable<WriteFileRequest>, context: HandlerContext) => {
      entered.resolve(context);
      try {
        const response = await handler(requests, context);
        ended.resolve(undefined);
        return response;
      } catch (error) {
        ended.resolve(error);
        throw error;
      }
    },
  };
}

describe("client streams", () => {
  it.each([0, 1, 16_383, 16_384, 16_385, 65_535, 65_536])(
    "B41 arrive whole, also when the handler reads late: %i bytes",
    async (size) => {
      const late = Promise.withResolvers<void>();
      const { writeFile: handler, entered } = recorded(async (requests) => {
        await late.promise;
        return await hashing(requests);
      });
      await using server = await listenWith({ files: { writeFile: handler } });
      const content = Buffer.alloc(size, 7);
      const upload = server.client.upload(writeFile);
      await send(upload, [start, data(content)]);
      await entered;
      await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w" })); // Round trips later …
      late.resolve();
      expect((await upload).file).toMatchObject({
        size: BigInt(size),
        path: createHash("sha256").update(content).digest("hex"),
      });
    },
  );

  it("B41 hold the client back while the handler does not read on, then deliver 100 MB whole", async () => {
    const late = Promise.withResolvers<void>();
    const { writeFile: handler, entered } = recorded(async (requests) => {
      const reading = requests[Symbol.asyncIterator]();
      await reading.next();
      await late.promise;
      return await hashing({ [Symbol.asyncIterator]: () => reading });
    });
    await using server = await listenWith({ files: { writeFile: handler } });
    using raw = new RawClient(server.address);
    const stream = raw.open(path);
    const chunk = Buffer.alloc(512 * 1024, 3);
    const bytes = frame(data(chunk));
    let sent = 0;
    const total = 200;
    const sending = (async () => {
      stream.write(frame(start));
      for (; sent < total; sent += 1) {
        if (!stream.write(bytes)) await new Promise<void>((resolve) => stream.once("drain", resolve));
      }
      stream.end();
    })();
    await entered;
    const settled = async (): Promise<number> => {
      for (;;) {
        const before = sent;
        for (let round = 0; round < 10; round += 1)
          await new Promise<void>((resolve) => raw.session.ping(() => resolve()));
        if (sent === before && sent > 0) return sent;
      }
    };
    // The window, the message that the call has read ahead, and the one that the client is writing.
    expect((await settled()) * chunk.length).toBeLessThanOrEqual(receiveWindowBytes + 3 * chunk.length);
    // Nobody else is held back.
    await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w" }));
    const whole = createHash("sha256");
    for (let at = 0; at < total; at += 1) whole.update(chunk);
    const answer: Buffer[] = [];
    stream.on("data", (part: Buffer) => answer.push(part)).resume();
    const closed = new Promise((resolve) => stream.once("close", resolve));
    late.resolve();
    await sending;
    await closed;
    expect(Buffer.concat(answer).toString("latin1")).toContain(whole.digest("hex"));
    expect(server.logged().at(-1)).toMatchObject({ rpc: "WriteFile", workspaceId: "w", level: "info" });
  }, 30_000);

  it("check every request, and name the workspace of the first one", async () => {
    const { writeFile: handler, ended } = recorded(hashing);
    await using server = await listenWith({ files: { writeFile: handler } });
    const upload = server.client.upload(writeFile);
    const failed = wireErrorOf(upload);
    upload.call.write(start);
    upload.call.write(data(Buffer.alloc(1024 * 1024 + 1)));
    expect(await failed).toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      reason: "INVALID_REQUEST",
      metadata: { operation: "WriteFile", workspace_id: "w", sandbox: "namzu-ws-w", field: "data" },
    });
    expect(await ended).toBeInstanceOf(HoldfastError);
    expect(server.logged()).toMatchObject([{ rpc: "WriteFile", workspaceId: "w", reason: "INVALID_REQUEST" }]);
  });

  it("refuse what breaks a rule inside a message of the stream, and bytes that are no message", async () => {
    await using server = await listenWith({ files: { writeFile: hashing } });
    const fenced = server.client.upload(writeFile);
    const refused = wireErrorOf(fenced);
    fenced.call.write({ part: { case: "start", value: { ...start.part.value, epoch: 1n << 53n } } });
    expect(await refused).toMatchObject({
      reason: "INVALID_REQUEST",
      metadata: { field: "start.epoch", workspace_id: "w" },
    });
    const garbage = server.client.upload(writeFile);
    const unreadable = wireErrorOf(garbage);
    garbage.call.write(start);
    garbage.call.write(Buffer.from([0x0a, 0xff, 0xff]));
    expect(await unreadable).toMatchObject({ reason: "INVALID_REQUEST", metadata: { workspace_id: "w" } });
  });

  it("end with MESSAGE_TOO_LARGE at a message beyond the limit, and the handler hears that it is over", async () => {
    const { writeFile: handler, ended } = recorded(hashing);
    await using server = await listenWith({ files: { writeFile: handler } });
    const upload = server.client.upload(writeFile);
    const failed = wireErrorOf(upload);
    upload.call.write(start);
    upload.call.write(Buffer.alloc(requestMaxBytes + 1));
    expect(await failed).toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED, reason: "MESSAGE_TOO_LARGE" });
    expect(await ended).toBeInstanceOf(Error);
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("answer an error, or a result, before the client has finished sending", async () => {
    const verdict = Promise.withResolvers<object>();
    await using server = await listenWith({ files: { writeFile: () => verdict.promise } });
    const uploads = [server.client.upload(writeFile), server.client.upload(writeFile)];
    const failures = uploads.map((upload) => wireErrorOf(upload));
    for (const { call } of uploads) for (let at = 0; at < 50; at += 1) call.write(data(Buffer.alloc(256 * 1024)));
    await expect.poll(() => server.admission.inProgress).toBe(2);
    verdict.reject(new HoldfastError("DISK_FULL", { message: "full", metadata: { path: "f" } }));
    for (const failure of failures)
      expect(await failure).toMatchObject({ reason: "DISK_FULL", metadata: { path: "f" } });
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it.each<[string, (call: Upload["call"]) => void, grpc.CallOptions]>([
    ["a cancel", (call) => call.cancel(), {}],
    ["a deadline", () => undefined, { deadline: 300 }],
  ])("%s midway aborts the signal and fails the requests, never ends them", async (_, end, options) => {
    const { writeFile: handler, ended, entered } = recorded(hashing);
    await using server = await listenWith({ files: { writeFile: handler } });
    const upload = server.client.upload(
      writeFile,
      options.deadline === undefined ? {} : { deadline: Date.now() + Number(options.deadline) },
    );
    const failed = wireErrorOf(upload);
    upload.call.write(start);
    const { signal } = await entered;
    end(upload.call);
    expect(await ended).toBe(signal.reason);
    expect(signal.aborted).toBe(true);
    await failed;
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect(server.logged()).toMatchObject([{ level: "info", clientGone: true, workspaceId: "w" }]);
  });

  it.each<[string, (raw: RawClient, stream: ReturnType<RawClient["open"]>) => void]>([
    ["a reset with NO_ERROR", (_, stream) => stream.close(0)],
    ["a reset with CANCEL", (_, stream) => stream.close(8)],
    ["the loss of its connection", (raw) => raw.session.socket.destroy()],
    ["the end of its session", (raw) => raw.session.destroy()],
    ["an end within a message", (_, stream) => stream.end(frame(data(Buffer.alloc(1_000))).subarray(0, 500))],
    ["an end within a message's head", (_, stream) => stream.end(Buffer.from([0, 0, 0]))],
  ])("%s is never taken for the end of the content", async (_, end) => {
    const reached = Promise.withResolvers<void>();
    const { writeFile: handler, ended } = recorded(async (requests) => {
      for await (const { part } of requests) if (part.case === "data") reached.resolve();
      return {};
    });
    await using server = await listenWith({ files: { writeFile: handler } });
    using raw = new RawClient(server.address);
    const stream = raw.open(path).resume();
    stream.write(frame(start));
    stream.write(frame(data(Buffer.alloc(1_000))));
    await reached.promise;
    end(raw, stream);
    expect(await ended).toBeInstanceOf(Error);
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("end normally at a half-close, with no request at all too", async () => {
    await using server = await listenWith({ files: { writeFile: hashing } });
    const upload = server.client.upload(writeFile);
    upload.call.end();
    expect((await upload).file?.size).toBe(0n);
  });

  it("leave nothing behind after 1,000 that are reset at once, read or not", async () => {
    const { writeFile: reading } = { writeFile: hashing };
    await using server = await listenWith({
      files: {
        writeFile: (requests, context) =>
          new Promise((_, reject) => {
            if (server.admission.inProgress % 2 === 0) reading(requests).catch(reject);
            else context.signal.addEventListener("abort", () => reject(context.signal.reason), { once: true });
          }),
      },
    });
    using raw = new RawClient(server.address);
    for (let round = 0; round < 20; round += 1) {
      const ends = Array.from({ length: 50 }, (_, at) => {
        const stream = raw.open(path).resume();
        stream.write(frame(start));
        const closed = new Promise((resolve) => stream.once("close", resolve));
        if (at % 2 === 0) stream.close(8);
        else setImmediate(() => stream.close(8));
        return closed;
      });
      await Promise.all(ends);
    }
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect(server.logged().filter(({ level }) => level !== "info")).toEqual([]);
  }, 30_000);
});

describe("a drain", () => {
  it("lets a client stream finish, and lets go of one that outlasts its grace: its requests fail, its signal does not abort", async () => {
    const { writeFile: handler, ended, entered } = recorded(hashing);
    await using server = await listenWith({ files: { writeFile: handler } });
    const quick = server.client.upload(writeFile);
    const slow = server.client.upload(writeFile);
    const lost = wireErrorOf(slow);
    slow.call.write(start);
    const { signal } = await entered;
    quick.call.write(start);
    await expect.poll(() => server.admission.inProgress).toBe(2);
    const idle = server.admission.drain();
    quick.call.end();
    await quick;
    server.admission.endUnary();
    expect(await lost).toMatchObject({ reason: "SERVICE_DRAINING", metadata: { workspace_id: "w" } });
    await idle;
    await ended;
    expect(signal.aborted).toBe(false);
  });
});
