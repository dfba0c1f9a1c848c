import { PassThrough } from "node:stream";
import * as grpc from "@grpc/grpc-js";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { receiveConnectionWindowBytes, receiveWindowBytes } from "@holdfast/contract";
import { describe, expect, it } from "vitest";
import { RawClient } from "./raw-http2.testing.ts";
import { raiseReceiveWindows } from "./receive-windows.ts";
import { listenWith } from "./test-listener.testing.ts";

const { getWorkspace } = WorkspaceService.method;

describe("receive windows", () => {
  it("are raised: the server announces several MiB per call and per connection", async () => {
    await using server = await listenWith({});
    using raw = new RawClient(server.address);
    const call = raw.call(getWorkspace, { workspaceId: "w" });
    await new Promise((resolve) => call.once("close", resolve).resume());
    expect(raw.session.remoteSettings.initialWindowSize).toBe(receiveWindowBytes);
    await expect.poll(() => raw.session.state.remoteWindowSize).toBeGreaterThan(receiveConnectionWindowBytes / 2);
  });

  it("leave a server of another make alone, and say so", () => {
    const other = new PassThrough() as unknown as grpc.Server;
    expect(raiseReceiveWindows(other)).toBe(false);
    expect(Object.keys(other)).not.toContain("commonServerOptions");
  });

  it("honour a deadline beyond 2^31 ms, which grpc-js would take for one in the past", async () => {
    await using server = await listenWith({
      workspaces: { getWorkspace: async ({ workspaceId }) => ({ workspace: { workspaceId } }) },
    });
    using raw = new RawClient(server.address);
    for (const timeout of ["99999999H", "2592000S", "99999999M", "10S"]) {
      const stream = raw.call(getWorkspace, { workspaceId: "w" }, { "grpc-timeout": timeout });
      const trailers = await new Promise<Record<string, unknown>>((resolve) =>
        stream
          .once("trailers", resolve)
          .once("response", (headers) => headers["grpc-status"] && resolve(headers))
          .resume(),
      );
      expect(trailers["grpc-status"], timeout).toBe(String(grpc.status.OK));
    }
  });
});
