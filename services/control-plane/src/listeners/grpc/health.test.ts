import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import * as grpc from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import type { TestClient } from "./grpc-client.testing.ts";
import { listenWith } from "./test-listener.testing.ts";

const serving = 1;
const notServing = 2;
const unknown = 3;

const same = (bytes: Buffer) => bytes;
const question = (service: string) => Buffer.from(new BinaryWriter().tag(1, 2).string(service).finish());

function statusOf(bytes: Uint8Array): number {
  const reader = new BinaryReader(bytes);
  reader.tag();
  return reader.int32();
}

function check(client: TestClient, service: string): Promise<number> {
  return new Promise((resolve, reject) => {
    client.grpc.makeUnaryRequest("/grpc.health.v1.Health/Check", same, same, question(service), (error, response) =>
      error || !response ? reject(error) : resolve(statusOf(response)),
    );
  });
}

const watch = (client: TestClient, service: string) =>
  client.grpc.makeServerStreamRequest("/grpc.health.v1.Health/Watch", same, same, question(service));

describe("health", () => {
  it("is SERVING for the server and each service, and NOT_FOUND for others", async () => {
    await using server = await listenWith({});
    for (const name of [
      "",
      "holdfast.v1.WorkspaceService",
      "holdfast.v1.ExecutionService",
      "holdfast.v1.InventoryService",
    ]) {
      expect(await check(server.client, name)).toBe(serving);
    }
    await expect(check(server.client, "another")).rejects.toMatchObject({ code: grpc.status.NOT_FOUND });
  });

  it("tells those who watch when the service drains, and lets them go when it closes", async () => {
    await using server = await listenWith({});
    const seen: number[] = [];
    const call = watch(server.client, "");
    const ended = new Promise((resolve) => call.once("status", resolve));
    const told = Promise.withResolvers<void>();
    call.on("data", (bytes: Buffer) => {
      seen.push(statusOf(bytes));
      if (seen.length === 1) server.listener.announceDrain();
      else told.resolve();
    });
    await told.promise;
    expect(seen).toEqual([serving, notServing]);
    await server.listener.close(new AbortController().signal);
    expect(await ended).toMatchObject({ code: grpc.status.OK });
  });

  it("answers SERVICE_UNKNOWN to a watch of another name", async () => {
    await using server = await listenWith({});
    const call = watch(server.client, "another");
    call.on("error", () => undefined);
    const first = await new Promise<Buffer>((resolve) => call.once("data", resolve));
    expect(statusOf(first)).toBe(unknown);
    call.cancel();
  });
});
