import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { ServerService } from "@holdfast/api/holdfast/v1/server_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { putFileMaxBytes } from "@holdfast/contract";
import { describe, expect, it } from "vitest";
import { Admission } from "./rpc/interceptors/admission.ts";
import { serverInfo } from "./server-info.ts";

const root = join(import.meta.dirname, "../../..");
const idle = { guests: { connections: 0, attachments: 0 }, watches: [] };
const served = [WorkspaceService, ExecutionService, InventoryService, ServerService];

describe("what the service says of itself", () => {
  it("is the version of the repository, what is served, and the limits of the contract", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    const info = serverInfo(served, { ...idle, registry: { size: 0 }, admission: new Admission() });
    expect(info).toMatchObject({ version, features: ["executions", "inventory", "workspaces"] });
    expect(info.limits.put_file_max_bytes).toBe(putFileMaxBytes);
  });

  it("counts handles, calls without the one that asks, and streams, and all return to zero", () => {
    const admission = new Admission();
    const counters = () => serverInfo(served, { ...idle, registry: { size: 3 }, admission }).counters;
    const asking = admission.enter("unary");
    const others = [admission.enter("unary"), admission.enter("server_streaming"), admission.enter("client_streaming")];
    expect(counters()).toMatchObject({ handles: 3, calls: 3, streams: 2 });
    for (const leave of others) leave();
    expect(counters()).toEqual({ handles: 3, calls: 0, streams: 0, attachments: 0, guestConnections: 0, watchers: 0 });
    asking();
  });

  it("counts what is followed in guests, connections to them, and watchers of both kinds", () => {
    const guests = { connections: 5, attachments: 2 };
    const sources = {
      registry: { size: 1 },
      admission: new Admission(),
      guests,
      watches: [{ watchers: 3 }, { watchers: 4 }],
    };
    expect(serverInfo(served, sources).counters).toMatchObject({ attachments: 2, guestConnections: 5, watchers: 7 });
  });
});
