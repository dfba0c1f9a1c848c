import * as grpc from "@grpc/grpc-js";
import { FlushOutcome, Origin, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import {
  type ExecuteResponse,
  ExecutionService,
  GapReason,
  Leftovers,
  OnDisconnect,
  OutputStream,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { InventoryService, OperatingMode } from "@holdfast/api/holdfast/v1/inventory_pb";
import { CreatePolicy, WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { outputChunkMaxBytes, runCommandTimeoutDefaultMs } from "@holdfast/contract";
import { exitedWith, Gate, type Stage, stage, workspaceId } from "@holdfast/testkit";
import type { ExecutionEvent, ExecutionWish } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WorkspaceInventory } from "../inventory.ts";
import { decodeError, wireErrorOf } from "../listeners/grpc/grpc-client.testing.ts";
import { listenWith } from "../listeners/grpc/test-listener.testing.ts";
import { Watching } from "../watching.ts";
import { executionService } from "./execution-service.ts";
import { inventoryService } from "./inventory-service.ts";
import { workspaceService } from "./workspace-service.ts";

const workspaces = WorkspaceService.method;
const executions = ExecutionService.method;
const inventory = InventoryService.method;

let on: Stage;
let server: Awaited<ReturnType<typeof listenWith>>;

beforeEach(async () => {
  on = stage();
  const watching = new Watching(on.deps);
  const { registry } = watching;
  server = await listenWith({
    workspaces: workspaceService(registry, watching),
    executions: executionService(registry),
    inventory: inventoryService(new WorkspaceInventory(on.deps, "default"), registry),
  });
});
afterEach(() => server[Symbol.asyncDispose]());

const id = workspaceId("demo");
const open = () => server.client.unary(workspaces.openWorkspace, { workspaceId: id });

/** Has the guest answer executions like this; returns the wishes that it was given. */
function answering(
  events: (wish: ExecutionWish, signal: AbortSignal) => AsyncIterable<ExecutionEvent>,
): ExecutionWish[] {
  const wishes: ExecutionWish[] = [];
  const [pod] = on.cluster.pods(id);
  if (!pod) throw new Error("no pod");
  on.guests.agent(pod.uid).execute = async function* (wish, signal) {
    wishes.push(wish);
    yield* events(wish, signal);
  };
  return wishes;
}

const started = (wish: ExecutionWish) =>
  ({ t: "started", executionId: wish.executionId, bootId: "boot" as never, attached: false }) as const;
const output = (offset: number, data: Uint8Array, stream: "stdout" | "stderr" = "stdout") =>
  ({ t: "output", stream, offset, data }) as const;

function collect(call: grpc.ClientReadableStream<ExecuteResponse>) {
  const events: ExecuteResponse["event"][] = [];
  return new Promise<{ events: typeof events; error: grpc.ServiceError | undefined }>((resolve) => {
    call.on("data", ({ event }: ExecuteResponse) => events.push(event));
    call.on("error", (error) => resolve({ events, error: error as grpc.ServiceError }));
    call.on("end", () => resolve({ events, error: undefined }));
  });
}

describe("WorkspaceService", () => {
  it("opens, reads, suspends, resumes, closes and destroys, and presents each", async () => {
    const { workspace: opened } = await open();
    expect(opened).toMatchObject({
      workspaceId: id,
      state: WorkspaceState.RUNNING,
      origin: Origin.CREATED,
      template: "small",
      root: "/workspace",
      identity: {
        sandboxUid: expect.stringMatching(/.+/),
        podUid: expect.stringMatching(/.+/),
        bootId: expect.stringMatching(/.+/),
      },
      pod: { name: "namzu-ws-demo", node: "node-1", restartCount: 0 },
    });
    expect(opened?.transition?.at?.seconds).toBe(BigInt(on.clock.now()) / 1000n);

    const read = await server.client.unary(workspaces.getWorkspace, { workspaceId: id, includeHealth: true });
    expect(read.workspace).toMatchObject({ origin: Origin.CREATED, health: { serving: true, protocolVersion: 1 } });

    const suspended = await server.client.unary(workspaces.suspendWorkspace, { workspaceId: id });
    expect(suspended.workspace?.state).toBe(WorkspaceState.SUSPENDED);
    expect(suspended.workspace?.pod).toBeUndefined();
    expect(suspended.flush?.outcome).toBe(FlushOutcome.UNSUPPORTED);

    const resumed = await server.client.unary(workspaces.resumeWorkspace, { workspaceId: id });
    expect(resumed.workspace).toMatchObject({ state: WorkspaceState.RUNNING, origin: Origin.RESUMED });

    expect(await server.client.unary(workspaces.closeWorkspace, { workspaceId: id })).toMatchObject({ wasOpen: true });
    expect(await server.client.unary(workspaces.closeWorkspace, { workspaceId: id })).toMatchObject({ wasOpen: false });
    const through = await server.client.unary(workspaces.getWorkspace, { workspaceId: id, includeHealth: true });
    expect(through.workspace).toMatchObject({ state: WorkspaceState.RUNNING, origin: Origin.UNSPECIFIED });
    expect(through.workspace?.health).toBeUndefined();

    const destroyed = await server.client.unary(workspaces.destroyWorkspace, { workspaceId: id, deleteDisk: true });
    expect(destroyed.workspace).toBeUndefined();
    expect(destroyed.flush?.outcome).toBe(FlushOutcome.SKIPPED);
    expect(on.cluster.stands(id)).toBe(false);
  });

  it("L4 destroys nothing without delete_disk: that is a suspend", async () => {
    await open();
    const { workspace } = await server.client.unary(workspaces.destroyWorkspace, { workspaceId: id });
    expect(workspace?.state).toBe(WorkspaceState.SUSPENDED);
    expect(on.cluster.plan.count("deleteSandbox")).toBe(0);
  });

  it("refuses a flush that is set together with delete_disk, before anything is sent", async () => {
    await open();
    const destroy = { workspaceId: id, deleteDisk: true, flush: { enabled: false } };
    const error = await wireErrorOf(server.client.unary(workspaces.destroyWorkspace, destroy));
    expect(error).toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      reason: "INVALID_REQUEST",
      metadata: { field: "flush" },
    });
    expect(on.cluster.stands(id)).toBe(true);
  });

  it("passes on what Open asks for", async () => {
    const missing = server.client.unary(workspaces.openWorkspace, { workspaceId: id, create: CreatePolicy.MUST_EXIST });
    expect((await wireErrorOf(missing)).reason).toBe("WORKSPACE_NOT_FOUND");
    on.cluster.seed(id, { mode: "Running" });
    const other = server.client.unary(workspaces.openWorkspace, { workspaceId: id, expectedSandboxUid: "another" });
    expect(await wireErrorOf(other)).toMatchObject({
      reason: "WORKSPACE_REPLACED",
      metadata: { operation: "OpenWorkspace" },
    });
    const taken = server.client.unary(workspaces.openWorkspace, { workspaceId: id, create: CreatePolicy.MUST_CREATE });
    expect((await wireErrorOf(taken)).reason).toBe("WORKSPACE_EXISTS");
    expect(on.cluster.plan.writes).toEqual([]);
  });
});

describe("Execute", () => {
  it("streams started, output in chunks that never skip, gaps, and one exit", async () => {
    await open();
    const large = Buffer.alloc(outputChunkMaxBytes + 5, "x");
    answering(async function* (wish) {
      yield started(wish);
      yield output(0, large);
      yield { t: "gap", from: large.length, to: large.length + 10, reason: "dropped" };
      yield output(large.length + 10, Buffer.from("end"), "stderr");
      yield {
        t: "exited",
        exit: {
          ...exitedWith(3),
          timedOut: true,
          leftovers: [{ pid: 7, name: "sh" }],
          outputBytes: large.length + 13,
          ranMs: 1500,
        },
      };
    });
    const { events, error } = await collect(
      server.client.stream(executions.execute, { workspaceId: id, command: "c" }),
    );
    expect(error).toBeUndefined();
    expect(events.map((event) => event.case)).toEqual(["started", "output", "output", "gap", "output", "exited"]);
    expect(events[1]?.value).toMatchObject({ stream: OutputStream.STDOUT, offset: 0n });
    expect(events[2]?.value).toMatchObject({
      offset: BigInt(outputChunkMaxBytes),
      data: expect.objectContaining({ length: 5 }),
    });
    expect(events[3]?.value).toMatchObject({
      from: BigInt(large.length),
      to: BigInt(large.length + 10),
      reason: GapReason.DROPPED,
    });
    expect(events[4]?.value).toMatchObject({ stream: OutputStream.STDERR });
    expect(events[5]?.value).toMatchObject({
      status: { case: "exitCode", value: 3 },
      timedOut: true,
      leftovers: [{ pid: 7, name: "sh" }],
      ran: { seconds: 1n, nanos: 500_000_000 },
    });
  });

  it("mints an id where none is chosen, and lets the choice decide what a disconnect means", async () => {
    await open();
    const wishes = answering(async function* (wish) {
      yield started(wish);
      yield { t: "exited", exit: exitedWith(0) };
    });
    const run = (request: object) =>
      collect(server.client.stream(executions.execute, { workspaceId: id, command: "c", ...request }));
    const { events } = await run({});
    await run({ executionId: "mine" });
    await run({ executionId: "mine", onDisconnect: OnDisconnect.CANCEL });
    await run({ onDisconnect: OnDisconnect.DETACH });
    expect(wishes.map(({ onDisconnect }) => onDisconnect)).toEqual(["cancel", "detach", "cancel", "detach"]);
    expect(wishes[0]?.executionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(events[0]?.value).toMatchObject({ executionId: wishes[0]?.executionId });
    expect(wishes[1]?.executionId).toBe("mine");
    expect(wishes[3]?.executionId).not.toBe(wishes[0]?.executionId);
  });

  it("passes every field on, exactly", async () => {
    await open();
    const wishes = answering(async function* () {
      yield { t: "exited", exit: exitedWith(0) };
    });
    await collect(
      server.client.stream(executions.execute, {
        workspaceId: id,
        command: "prog",
        args: ["a", "", "ü"],
        cwd: "sub",
        env: { A: "1", EMPTY: "" },
        timeout: { seconds: 30n * 24n * 3600n, nanos: 1 },
        maxOutput: 18_446_744_073_709_551_615n,
        stdin: Buffer.from([0, 255]),
        retainOutput: true,
        drain: { seconds: 0n, nanos: 0 },
        leftovers: Leftovers.KILL,
      }),
    );
    await collect(
      server.client.stream(executions.execute, {
        workspaceId: id,
        command: "prog",
        timeout: { seconds: 0n, nanos: 0 },
      }),
    );
    expect(wishes[0]).toMatchObject({
      command: "prog",
      args: ["a", "", "ü"],
      cwd: "sub",
      env: { A: "1", EMPTY: "" },
      timeoutMs: 2_592_000_001,
      maxOutputBytes: Number.MAX_SAFE_INTEGER,
      retainOutput: true,
      drainMs: 0,
      leftovers: "kill",
    });
    expect([...(wishes[0]?.stdin ?? [])]).toEqual([0, 255]);
    expect(wishes[1]).toMatchObject({
      timeoutMs: undefined,
      maxOutputBytes: undefined,
      stdin: undefined,
      cwd: undefined,
      drainMs: undefined,
      leftovers: "keep",
    });
  });

  it("tells the guest's side of a client that goes away by the signal, and nothing else", async () => {
    await open();
    const gate = new Gate();
    const ended = Promise.withResolvers<boolean>();
    answering(async function* (wish, signal) {
      yield started(wish);
      try {
        await gate.pass(signal);
      } finally {
        ended.resolve(signal.aborted);
      }
    });
    const call = server.client.stream(executions.execute, { workspaceId: id, command: "c" });
    call.on("error", () => undefined);
    call.once("data", () => call.cancel());
    expect(await ended.promise).toBe(true);
  });

  it("L44 ends in a drain as EXECUTION_DETACHED with id and offset, and the guest hears of no client's end", async () => {
    await open();
    const gate = new Gate();
    let signalOfCall: AbortSignal | undefined;
    answering(async function* (wish, signal) {
      signalOfCall = signal;
      yield started(wish);
      yield output(0, Buffer.from("abc"));
      await gate.pass(signal);
    });
    const stream = collect(
      server.client.stream(executions.execute, { workspaceId: id, command: "c", executionId: "mine" }),
    );
    const unary = wireErrorOf(server.client.unary(executions.runCommand, { workspaceId: id, command: "c" }));
    await gate.reached;
    await expect.poll(() => server.admission.inProgress).toBe(2);
    const idle = server.admission.drain();
    const { events, error } = await stream;
    expect(events.map((event) => event.case)).toEqual(["started", "output"]);
    expect(error && decodeError(error)).toMatchObject({
      code: grpc.status.UNKNOWN,
      reason: "EXECUTION_DETACHED",
      message: expect.stringContaining("attach to it by its id, from offset 3"),
      metadata: { execution_id: "mine", next_offset: "3", why: "service_draining", operation: "Execute" },
    });
    server.admission.endUnary();
    expect(await unary).toMatchObject({
      reason: "EXECUTION_DETACHED",
      metadata: { next_offset: "0", operation: "RunCommand" },
    });
    await idle;
    expect(signalOfCall?.aborted).toBe(false);
  });
});

describe("RunCommand", () => {
  it("collects both outputs with caps and says what was cut", async () => {
    await open();
    const wishes = answering(async function* (wish) {
      yield started(wish);
      yield output(0, Buffer.from("abcdef"));
      yield output(6, Buffer.from("err"), "stderr");
      yield { t: "exited", exit: { ...exitedWith(0), status: { t: "signal", signal: "SIGKILL" } } };
    });
    const response = await server.client.unary(executions.runCommand, { workspaceId: id, command: "c", maxOutput: 4 });
    expect(Buffer.from(response.stdout).toString()).toBe("abcd");
    expect(Buffer.from(response.stderr).toString()).toBe("err");
    expect(response).toMatchObject({
      stdoutTruncated: true,
      stderrTruncated: false,
      executionId: wishes[0]?.executionId,
    });
    expect(response.exited?.status).toEqual({ case: "signal", value: "SIGKILL" });
    expect(wishes[0]).toMatchObject({ timeoutMs: runCommandTimeoutDefaultMs, onDisconnect: "cancel" });
  });

  it("has no timeout when it is asked for 0", async () => {
    await open();
    const wishes = answering(async function* () {
      yield { t: "exited", exit: exitedWith(0) };
    });
    await server.client.unary(executions.runCommand, {
      workspaceId: id,
      command: "c",
      timeout: { seconds: 0n, nanos: 0 },
    });
    expect(wishes[0]?.timeoutMs).toBeUndefined();
  });

  it("ends the command when its caller goes away, also under an id of the caller's", async () => {
    await open();
    const gate = new Gate();
    const ended = Promise.withResolvers<ExecutionWish["onDisconnect"]>();
    answering(async function* (wish, signal) {
      signal.addEventListener("abort", () => ended.resolve(wish.onDisconnect), { once: true });
      yield started(wish);
      await gate.pass(signal);
    });
    const call = server.client.unary(executions.runCommand, { workspaceId: id, command: "c", executionId: "mine" });
    call.catch(() => undefined);
    await gate.reached;
    call.call.cancel();
    expect(await ended.promise).toBe("cancel");
  });
});

describe("ListWorkspaces", () => {
  it("pages through what there is, each row once, and wakes nothing", async () => {
    const ids = Array.from({ length: 7 }, (_, at) => workspaceId(`w${at}`));
    for (const each of ids) on.cluster.seed(each, { mode: each === "w3" ? "Suspended" : "Running" });
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await server.client.unary(inventory.listWorkspaces, { pageSize: 3, pageToken });
      seen.push(...page.workspaces.map((row) => row.workspaceId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(ids);
    const suspended = await server.client.unary(inventory.listWorkspaces, { mode: OperatingMode.SUSPENDED });
    expect(suspended.workspaces.map((row) => row.workspaceId)).toEqual(["w3"]);
    expect(suspended.workspaces[0]).toMatchObject({
      mode: OperatingMode.SUSPENDED,
      template: "small",
      holderEpoch: 0n,
    });
    expect(suspended.workspaces[0]?.modeChangedAt).toBeUndefined();
    expect(on.guests.calls).toEqual([]);
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("refuses a token under another filter, and a page that is too large", async () => {
    for (const text of ["a", "b"]) on.cluster.seed(workspaceId(text));
    const { nextPageToken } = await server.client.unary(inventory.listWorkspaces, { pageSize: 1 });
    expect(nextPageToken).not.toBe("");
    const other = { pageSize: 1, pageToken: nextPageToken, workspaceIdPrefix: "a" };
    expect(await wireErrorOf(server.client.unary(inventory.listWorkspaces, other))).toMatchObject({
      reason: "PAGE_TOKEN_EXPIRED",
      metadata: { field: "page_token" },
    });
    expect((await wireErrorOf(server.client.unary(inventory.listWorkspaces, { pageSize: 1001 }))).reason).toBe(
      "INVALID_REQUEST",
    );
  });

  it("says CLUSTER_UNAVAILABLE when the cluster does not answer", async () => {
    on.cluster.plan.fail("listSandboxes", "unavailable");
    expect(await wireErrorOf(server.client.unary(inventory.listWorkspaces, {}))).toMatchObject({
      code: grpc.status.UNAVAILABLE,
      reason: "CLUSTER_UNAVAILABLE",
    });
  });
});
