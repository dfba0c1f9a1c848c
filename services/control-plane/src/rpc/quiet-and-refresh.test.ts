import * as grpc from "@grpc/grpc-js";
import { FlushOutcome, QuiesceOutcome, QuiesceScope, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { flushTimeoutDefaultMs, quiescedNamedMax, quiesceGraceMaxMs } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
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
let released: string[];
let flushes: number[];

beforeEach(async () => {
  on = stage();
  orders = [];
  released = [];
  flushes = [];
  on.guests.shape = (script) => {
    const { health } = script;
    script.health = async (within) => ({
      ...(await health(within)),
      features: ["executions", "probe", "quiesce", "flush"],
    });
    script.releaseQuiesce = async (holdId) => void released.push(holdId);
    script.flush = async (timeoutMs) => {
      flushes.push(timeoutMs);
      return { tookMs: 1 };
    };
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

describe("L28 quiesce, release, flush and refresh by themselves, on the wire", () => {
  it("quiesces with the guest's own grace, held for as long as is asked, and lets it go by its id", async () => {
    const plain = await server.client.unary(workspaces.quiesceWorkspace, { workspaceId: id });
    expect(orders).toEqual([{ graceMs: undefined, holdMs: undefined }]);
    expect(plain.quiesce).toMatchObject({ outcome: QuiesceOutcome.QUIESCED, rounds: 3, stoppedCount: 100 });
    expect(plain.quiesce?.stopped).toHaveLength(quiescedNamedMax);
    const wish = { workspaceId: id, quiesce: { grace: { nanos: 5_000_000 } }, hold: { seconds: 60n } };
    const { holdId } = await server.client.unary(workspaces.quiesceWorkspace, wish);
    expect([orders[1], holdId]).toEqual([{ graceMs: 5, holdMs: 60_000 }, "h"]);
    await server.client.unary(workspaces.releaseWorkspace, { workspaceId: id, holdId });
    await server.client.unary(workspaces.releaseWorkspace, { workspaceId: id });
    expect(released).toEqual(["h", ""]);
    expect(on.cluster.plan.requests).toEqual([]);
  });

  it("flushes within the time that is asked, and says how long it took", async () => {
    expect((await server.client.unary(workspaces.flushWorkspace, { workspaceId: id })).took).toMatchObject({
      nanos: 1_000_000,
    });
    await server.client.unary(workspaces.flushWorkspace, { workspaceId: id, timeout: { nanos: 1 } });
    expect(flushes).toEqual([flushTimeoutDefaultMs, 1]);
  });

  it.each([
    ["quiesceWorkspace", { hold: { seconds: 0n } }, "hold"],
    ["quiesceWorkspace", { hold: { seconds: 601n } }, "hold"],
    ["flushWorkspace", { timeout: { seconds: 0n } }, "timeout"],
    ["flushWorkspace", { timeout: { seconds: -1n } }, "timeout"],
  ] as const)("%s refuses %o before anything is sent", async (verb, more, field) => {
    const error = await wireErrorOf(server.client.unary(workspaces[verb], { workspaceId: id, ...more }));
    expect(error).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field } });
    expect([orders, flushes]).toEqual([[], []]);
  });

  it("needs a workspace that runs, its epoch, and a guest that can", async () => {
    const pod = on.cluster.pods(id)[0];
    if (!pod) throw new Error("no pod");
    on.guests.agent(pod.uid).quiesce = async () => {
      throw new HoldfastError("GUEST_FEATURE_MISSING", { message: "not this one" });
    };
    const call = (verb: "quiesceWorkspace" | "flushWorkspace" | "releaseWorkspace", more = {}) =>
      wireErrorOf(server.client.unary(workspaces[verb], { workspaceId: id, ...more }));
    expect(await call("quiesceWorkspace")).toMatchObject({ reason: "GUEST_FEATURE_MISSING" });
    expect(await call("flushWorkspace", { epoch: 3n })).toMatchObject({ reason: "GUEST_FEATURE_MISSING" });
    await server.client.unary(workspaces.suspendWorkspace, { workspaceId: id });
    for (const verb of ["quiesceWorkspace", "flushWorkspace", "releaseWorkspace"] as const) {
      expect(await call(verb)).toMatchObject({ reason: "WORKSPACE_SUSPENDED", metadata: { workspace_id: id } });
    }
  });

  it("refresh takes what the object shows, and says when it cannot be read: nothing old is passed for new", async () => {
    const state = async () =>
      (await server.client.unary(workspaces.refreshWorkspace, { workspaceId: id })).workspace?.state;
    expect(await state()).toBe(WorkspaceState.RUNNING);
    on.cluster.plan.fail("readSandbox", "unavailable");
    expect(await wireErrorOf(server.client.unary(workspaces.refreshWorkspace, { workspaceId: id }))).toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
    });
    const nobody = server.client.unary(workspaces.refreshWorkspace, { workspaceId: "nobody" });
    expect(await wireErrorOf(nobody)).toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
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
