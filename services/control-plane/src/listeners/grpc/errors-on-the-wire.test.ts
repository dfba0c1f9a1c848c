import { anyUnpack } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { BadRequestSchema, RetryInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { errorMessageMaxLength, requestMaxBytes, violationsNamedMax } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import { decodeError, wireErrorOf } from "./grpc-client.testing.ts";
import { listenWith } from "./test-listener.testing.ts";

const { getWorkspace, suspendWorkspace } = WorkspaceService.method;
const { execute, runCommand } = ExecutionService.method;

const violationsOf = (error: { status: { details: Parameters<typeof anyUnpack>[0][] } | undefined }) =>
  error.status?.details.flatMap((detail) => anyUnpack(detail, BadRequestSchema)?.fieldViolations ?? []) ?? [];

describe("errors on the wire", () => {
  it("carry status, reason, the metadata of all, and RetryInfo where a retry helps", async () => {
    await using server = await listenWith({
      workspaces: {
        getWorkspace: () =>
          Promise.reject(
            new HoldfastError("CLUSTER_UNAVAILABLE", {
              message: "The cluster is not there – é.",
              metadata: { budget_ms: "10" },
            }),
          ),
      },
    });
    const error = await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w1" }));
    expect(error).toMatchObject({
      code: grpc.status.UNAVAILABLE,
      message: "The cluster is not there – é.",
      reason: "CLUSTER_UNAVAILABLE",
      metadata: { operation: "GetWorkspace", workspace_id: "w1", sandbox: "namzu-ws-w1", budget_ms: "10" },
    });
    const retry = error.status?.details.map((detail) => anyUnpack(detail, RetryInfoSchema)).find(Boolean);
    expect(retry?.retryDelay?.seconds).toBe(2n);
  });

  it("name every violation of a request at once, on unary calls and on streams", async () => {
    await using server = await listenWith({});
    const request = {
      workspaceId: "Not_One",
      command: "",
      args: ["a\0b"],
      env: { "1x": "y" },
      timeout: { seconds: -1n, nanos: 0 },
    };
    const fields = ["workspace_id", "command", "args[0]", 'env["1x"]', "timeout"];
    const unary = await wireErrorOf(server.client.unary(runCommand, request));
    expect(unary).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, reason: "INVALID_REQUEST" });
    expect(violationsOf(unary).map(({ field }) => field)).toEqual(fields);
    expect(unary.metadata).toMatchObject({ operation: "RunCommand", workspace_id: "Not_One" });
    expect(unary.metadata.sandbox).toBeUndefined();

    const stream = server.client.stream(execute, request);
    const failed = await new Promise<grpc.ServiceError>((resolve) => {
      stream.on("error", (error) => resolve(error as grpc.ServiceError)).resume();
    });
    expect(violationsOf(decodeError(failed)).map(({ field }) => field)).toEqual(fields);
  });

  it("refuse durations that are none, also inside a message", async () => {
    await using server = await listenWith({});
    const error = await wireErrorOf(
      server.client.unary(suspendWorkspace, {
        workspaceId: "w1",
        flush: { timeout: { seconds: 1n, nanos: 2_000_000_000 } },
        stopTimeout: { seconds: 1n, nanos: -5 },
      }),
    );
    expect(violationsOf(error).map(({ field }) => field)).toEqual(["flush.timeout", "stop_timeout"]);
  });

  it("stay small however much is wrong: the first violations by name, the rest counted", async () => {
    await using server = await listenWith({});
    const args = Array.from({ length: 500 }, () => "\0");
    const env = { ["x".repeat(10_000)]: "" };
    const error = await wireErrorOf(server.client.unary(runCommand, { workspaceId: "w1", command: "c", args, env }));
    expect(error.reason).toBe("INVALID_REQUEST");
    const violations = violationsOf(error);
    expect(violations).toHaveLength(violationsNamedMax + 1);
    expect(violations.at(-1)?.description).toMatch(/^and \d+ more$/);
    expect(JSON.stringify(violations).length).toBeLessThan(16_000);
  });

  it.each([
    ["no number", ["latest"]],
    ["beyond 2^53 − 1", ["9007199254740992"]],
    ["not in plain decimal", ["1e3"]],
    ["empty", [""]],
    ["given twice", ["7", "7"]],
  ])("L20 refuse metadata that is no epoch, on every call, before anything: %s", async (_, values) => {
    await using server = await listenWith({});
    const metadata = new grpc.Metadata();
    for (const value of values) metadata.add("holdfast-epoch", value);
    const error = await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w1" }, {}, metadata));
    expect(error).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, reason: "INVALID_REQUEST" });
    expect(violationsOf(error).map(({ field }) => field)).toEqual(["metadata holdfast-epoch"]);
  });

  it("say nothing of a defect but its request id, which the log explains", async () => {
    await using server = await listenWith({
      workspaces: { getWorkspace: () => Promise.reject(new TypeError("secret of line 12")) },
    });
    const error = await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w1" }));
    expect(error).toMatchObject({ code: grpc.status.INTERNAL, reason: "INTERNAL_ERROR" });
    expect(JSON.stringify(error, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toMatch(
      /secret|\.ts/,
    );
    const line = server.logged().find(({ requestId }) => requestId === error.metadata.request_id);
    expect(line).toMatchObject({ level: "error", rpc: "GetWorkspace", workspaceId: "w1", reason: "INTERNAL_ERROR" });
    expect(JSON.stringify(line)).toContain("secret of line 12");
  });

  it("come back for bytes that are no message, and for a request that is too large", async () => {
    await using server = await listenWith({});
    const garbage = await wireErrorOf(server.client.unary(getWorkspace, Buffer.from([0x0a, 0xff, 0xff])));
    expect(garbage).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, reason: "INVALID_REQUEST" });
    const large = await wireErrorOf(server.client.unary(getWorkspace, Buffer.alloc(requestMaxBytes + 1)));
    expect(large).toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED, reason: "MESSAGE_TOO_LARGE" });
  });

  it("fit their trailers, and never break on text that is no Unicode", async () => {
    await using server = await listenWith({
      workspaces: {
        getWorkspace: () =>
          Promise.reject(
            new HoldfastError("CLUSTER_WRITE_REFUSED", {
              message: `\ud800${"x".repeat(100_000)}`,
              metadata: { said: "\udfff".repeat(9_999) },
            }),
          ),
      },
    });
    const error = await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w1" }));
    expect(error.reason).toBe("CLUSTER_WRITE_REFUSED");
    expect(error.message.length).toBeLessThanOrEqual(errorMessageMaxLength);
  });

  it("name the capacity when every place is taken", async () => {
    const held = Promise.withResolvers<never>();
    await using server = await listenWith({ workspaces: { getWorkspace: () => held.promise } }, 1);
    const first = server.client.unary(getWorkspace, { workspaceId: "w1" });
    const gone = wireErrorOf(first);
    await expect.poll(() => server.admission.inProgress).toBe(1);
    const second = await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w1" }));
    expect(second).toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED, reason: "STREAM_CAPACITY" });
    held.reject(new HoldfastError("WORKSPACE_NOT_FOUND", { message: "gone" }));
    expect((await gone).reason).toBe("WORKSPACE_NOT_FOUND");
  });
});

describe("the log", () => {
  it("has one line per call with its duration and reason, and nothing of the request's content", async () => {
    await using server = await listenWith({
      executions: { runCommand: async () => ({ executionId: "e" }) },
    });
    await server.client.unary(runCommand, {
      workspaceId: "w1",
      command: "c",
      env: { KEY: "s3cret" },
      stdin: Buffer.from("s3cret"),
    });
    await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w2" }));
    const lines = server.logged();
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatchObject({
      level: "info",
      rpc: "RunCommand",
      workspaceId: "w1",
      durationMs: expect.any(Number),
    });
    expect(lines[1]).toMatchObject({
      level: "info",
      rpc: "GetWorkspace",
      workspaceId: "w2",
      reason: "WORKSPACE_NOT_FOUND",
    });
    expect(JSON.stringify(lines)).not.toContain("s3cret");
  });
});
