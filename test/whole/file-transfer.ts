import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import {
  FileService,
  ReadFileRequestSchema,
  type ReadFileResponse,
  ReadFileResponseSchema,
  WriteFileRequestSchema,
  type WriteFileResponse,
  WriteFileResponseSchema,
} from "@holdfast/api/holdfast/v1/file_pb";

const chunkBytes = 64 * 1024;

/** Moves files of any size with an ordinary grpc-js client; nothing but one chunk is kept. */
export class FileTransfer implements Disposable {
  readonly #client: grpc.Client;
  readonly #workspaceId: string;

  /** `windowBytes`: what the server may send before it is read; a far client raises it. */
  constructor(target: string, workspaceId: string, windowBytes = 65_535) {
    this.#workspaceId = workspaceId;
    this.#client = new grpc.Client(target, grpc.credentials.createInsecure(), {
      "grpc-node.flow_control_window": windowBytes,
    });
  }

  /** Sends this chunk so many times. */
  async up(path: string, chunk: Uint8Array, times: number): Promise<WriteFileResponse> {
    let call: grpc.ClientWritableStream<Buffer> | undefined;
    const answered = new Promise<WriteFileResponse>((resolve, reject) => {
      call = this.#client.makeClientStreamRequest(
        `/${FileService.typeName}/WriteFile`,
        (bytes: Buffer) => bytes,
        (bytes) => fromBinary(WriteFileResponseSchema, bytes),
        (error, response) => (error || !response ? reject(error) : resolve(response)),
      );
    });
    answered.catch(() => undefined);
    const requestOf = (part: Parameters<typeof create<typeof WriteFileRequestSchema>>[1]): Buffer =>
      Buffer.from(toBinary(WriteFileRequestSchema, create(WriteFileRequestSchema, part)));
    const value = { workspaceId: this.#workspaceId, path, size: BigInt(chunk.byteLength * times) };
    call?.write(requestOf({ part: { case: "start", value } }));
    const data = requestOf({ part: { case: "data", value: chunk } });
    for (let sent = 0; sent < times; sent += 1) {
      if (!call?.write(data)) await new Promise<void>((resolve) => call?.once("drain", resolve));
    }
    call?.end();
    return await answered;
  }

  /** Reads a file and hands over each chunk; resolves with how many bytes came. */
  async down(path: string, take: (data: Uint8Array) => void): Promise<number> {
    const call = this.#client.makeServerStreamRequest(
      `/${FileService.typeName}/ReadFile`,
      (bytes: Buffer) => bytes,
      (bytes) => fromBinary(ReadFileResponseSchema, bytes),
      Buffer.from(
        toBinary(ReadFileRequestSchema, create(ReadFileRequestSchema, { workspaceId: this.#workspaceId, path })),
      ),
    );
    let bytes = 0;
    for await (const { event } of call as AsyncIterable<ReadFileResponse>) {
      if (event.case !== "chunk") continue;
      if (event.value.offset !== BigInt(bytes) || event.value.data.length > chunkBytes) throw new Error("not in order");
      bytes += event.value.data.length;
      take(event.value.data);
    }
    return bytes;
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
