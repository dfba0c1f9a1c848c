import * as grpc from "@grpc/grpc-js";
import { FlushOutcome, QuiesceOutcome, QuiesceScope } from "@holdfast/api/holdfast/v1/common_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { quiescedNamedMax, quiesceGraceMaxMs } from "@holdfast/contract";
import { type Stage, stage, usableDisk, workspaceId } from "@holdfast/testkit";
import type { QuiesceOrder } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { wireErrorOf } from "../listeners/grpc/grpc-client.testing.ts";
import { listenWith } from "../listeners/grpc/test-listener.testing.ts";
import { Watching } from "../watching.ts";
import { workspaceService } from "./workspace-service.ts";

const workspaces = WorkspaceService.method;
const id = workspaceId("demo");
let on: Stage;
let server: Awaited<ReturnType<typeof listenWith>>;
let orders: QuiesceOrder[];

beforeEach(async () => {
  on = stage();
  orders = [];
  on.guests.shape = (script) => {
    const { health } = script;
    script.health = async (within) => ({
      ...(await health(within)),
      features: ["executions", "probe", "quiesce", "flush"],
    });
    script.quiesce = async (order) => {
      orders.push(order);
      const many = Array.from({ length: 100 }, (_, pid) => ({ pid, name: "make", lastSignal: "SIGTERM" }));
      return { scope: "owned_sessions", rounds: 3, stopped: many, stoppedCount: 100, notReached: many, holdId: "h" };
    };
  };
  const watching = new Watching(on.deps);
  server = await listenWith({ workspaces: workspaceService(watching.registry, watching) });
  await server.client.unary(workspaces.openWorkspace, { workspaceId: id });
  on.cluster.plan.requests.length = 0;
});
afterEach(() => server[Symbol.asyncDispose]());

describe("L27 quiesce on the wire", () => {
  it.each(["suspendWorkspace", "destroyWorkspace"] as const)(
    "%s passes the grace on and reports it whole",
    async (verb) => {
      const request = { workspaceId: id, quiesce: { grace: { seconds: 2n, nanos: 5_000_000 } } };
      const { quiesce, flush } = await server.client.unary(workspaces[verb], request);
      expect(orders).toMatchObject([{ graceMs: 2_005, holdMs: expect.any(Number) }]);
      expect(flush?.outcome).toBe(FlushOutcome.FLUSHED);
      expect(quiesce).toMatchObject({
        outcome: QuiesceOutcome.QUIESCED,
        cause: expect.stringContaining("cannot see the whole pod"),
        scope: QuiesceScope.OWNED_SESSIONS,
        rounds: 3,
        stoppedCount: 100,
      });
      expect(quiesce?.stopped).toHaveLength(quiescedNamedMax);
      expect(quiesce?.notReached[1]).toMatchObject({ pid: 1n, name: "make", lastSignal: "SIGTERM" });
    },
  );

  it("has the guest's own grace where none is given, and no report where none is asked for", async () => {
    expect(
      (await server.client.unary(workspaces.suspendWorkspace, { workspaceId: id, quiesce: {} })).quiesce,
    ).toBeDefined();
    expect(orders).toMatchObject([{ graceMs: undefined }]);
    await server.client.unary(workspaces.resumeWorkspace, { workspaceId: id });
    expect((await server.client.unary(workspaces.suspendWorkspace, { workspaceId: id })).quiesce).toBeUndefined();
  });

  it("refuses a grace above the limit before anything is sent", async () => {
    const tooLong = { workspaceId: id, quiesce: { grace: { seconds: 5n, nanos: 0 } } };
    const error = await wireErrorOf(server.client.unary(workspaces.suspendWorkspace, tooLong));
    expect(error).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "quiesce.grace" } });
    expect(quiesceGraceMaxMs).toBe(4_999);
    const longest = { workspaceId: id, quiesce: { grace: { seconds: 4n, nanos: 999_000_000 } } };
    await server.client.unary(workspaces.suspendWorkspace, longest);
    expect(orders).toMatchObject([{ graceMs: quiesceGraceMaxMs }]);
  });

  it("L28 refuses quiesce and flush together with delete_disk, both by name, before anything is sent", async () => {
    const destroy = { workspaceId: id, deleteDisk: true, quiesce: {}, flush: {} };
    const error = await wireErrorOf(server.client.unary(workspaces.destroyWorkspace, destroy));
    expect(error).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, reason: "INVALID_REQUEST" });
    expect(error.message).toMatch(/quiesce: cannot be set.*flush: cannot be set/);
    expect([on.cluster.plan.requests, orders]).toEqual([[], []]);
  });
});

describe("L31, L16 on the wire", () => {
  it("refresh_pod_template writes the current template, and template_current says so", async () => {
    await server.client.unary(workspaces.suspendWorkspace, { workspaceId: id });
    on.cluster.addTemplate("small", usableDisk, { revision: "sha256:new" });
    const plain = await server.client.unary(workspaces.resumeWorkspace, { workspaceId: id });
    expect(plain.workspace).toMatchObject({ templateRevision: "sha256:00" });
    await server.client.unary(workspaces.suspendWorkspace, { workspaceId: id });
    const wish = { workspaceId: id, refreshPodTemplate: true };
    const { workspace } = await server.client.unary(workspaces.resumeWorkspace, wish);
    expect(workspace).toMatchObject({ templateRevision: "sha256:new", templateCurrent: true });
  });

  it.each(["resumeWorkspace", "openWorkspace"] as const)("%s takes accept_replaced_disk", async (verb) => {
    await server.client.unary(workspaces.suspendWorkspace, { workspaceId: id });
    on.cluster.claims.set("disk-namzu-ws-demo", "an-empty-one");
    const error = await wireErrorOf(server.client.unary(workspaces[verb], { workspaceId: id }));
    expect(error).toMatchObject({ reason: "WORKSPACE_REPLACED", metadata: { actual: "an-empty-one" } });
    const wish = { workspaceId: id, acceptReplacedDisk: true };
    const { workspace } = await server.client.unary(workspaces[verb], wish);
    expect(workspace?.identity?.claimUids).toEqual({ "disk-namzu-ws-demo": "an-empty-one" });
  });
});
