import { create } from "@bufbuild/protobuf";
import { PutFileRequestSchema } from "@holdfast/api/holdfast/v1/file_pb";
import { ListWorkspacesRequestSchema } from "@holdfast/api/holdfast/v1/inventory_pb";
import { TerminalRequestSchema } from "@holdfast/api/holdfast/v1/session_pb";
import { GetWorkspaceRequestSchema, SuspendWorkspaceRequestSchema } from "@holdfast/api/holdfast/v1/workspace_pb";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import { callerErrorOf, workspaceIdOfRequest } from "./error-mapping.ts";

const subject = { operation: "GetWorkspace", requestId: "r1", workspaceId: "w1" };
const failing = (init: Partial<ConstructorParameters<typeof HoldfastError>[1]> = {}) =>
  new HoldfastError("START_TIMEOUT", { message: "late", ...init });

describe("the subject of a request", () => {
  it("is its own workspace, or that of the message that begins a stream or a write", () => {
    const own = create(GetWorkspaceRequestSchema, { workspaceId: "w1" });
    expect(workspaceIdOfRequest(GetWorkspaceRequestSchema, own)).toBe("w1");
    const nested = create(SuspendWorkspaceRequestSchema, { workspaceId: "w2", flush: {} });
    expect(workspaceIdOfRequest(SuspendWorkspaceRequestSchema, nested)).toBe("w2");
    const start = create(TerminalRequestSchema, { request: { case: "start", value: { workspaceId: "w3" } } });
    expect(workspaceIdOfRequest(TerminalRequestSchema, start)).toBe("w3");
    const put = create(PutFileRequestSchema, { start: { workspaceId: "w4" } });
    expect(workspaceIdOfRequest(PutFileRequestSchema, put)).toBe("w4");
  });

  it("is none where none is named: a later request of a stream, a write without its start, a list", () => {
    const input = create(TerminalRequestSchema, { request: { case: "resize", value: { columns: 1, rows: 1 } } });
    expect(workspaceIdOfRequest(TerminalRequestSchema, input)).toBeUndefined();
    expect(workspaceIdOfRequest(PutFileRequestSchema, create(PutFileRequestSchema, {}))).toBeUndefined();
    expect(workspaceIdOfRequest(ListWorkspacesRequestSchema, create(ListWorkspacesRequestSchema, {}))).toBeUndefined();
  });
});

describe("an error on its way to the caller", () => {
  it("names operation, workspace and sandbox, and keeps what it is about, its violations and how it travels", () => {
    const violations = [{ field: "a", description: "is none" }];
    const told = callerErrorOf(failing({ metadata: { pod: "p" }, violations, onAttach: true }), subject);
    expect(told).toMatchObject({ reason: "START_TIMEOUT", message: "late", violations, onAttach: true });
    expect(told.metadata).toEqual({ pod: "p", operation: "GetWorkspace", workspace_id: "w1", sandbox: "namzu-ws-w1" });
  });

  it("names no sandbox of an id that is none, and no workspace where none was named", () => {
    const odd = callerErrorOf(failing(), { ...subject, workspaceId: "Not One" });
    expect(odd.metadata).toEqual({ operation: "GetWorkspace", workspace_id: "Not One" });
    for (const workspaceId of [undefined, ""]) {
      expect(callerErrorOf(failing(), { ...subject, workspaceId }).metadata).toEqual({ operation: "GetWorkspace" });
    }
  });

  it("fits its trailers to the character: at the limits whole, one above cut with a mark", () => {
    const at = callerErrorOf(failing({ message: "m".repeat(2_048), metadata: { v: "v".repeat(256) } }), subject);
    expect([at.message, at.metadata.v]).toEqual(["m".repeat(2_048), "v".repeat(256)]);
    const above = callerErrorOf(failing({ message: "m".repeat(2_049), metadata: { v: "v".repeat(257) } }), subject);
    expect([above.message, above.metadata.v]).toEqual([`${"m".repeat(2_047)}…`, `${"v".repeat(255)}…`]);
  });

  it("of anything but ours is a defect that says nothing of itself but the request's id", () => {
    for (const thrown of [new TypeError("secret"), "secret", undefined]) {
      const told = callerErrorOf(thrown, subject);
      expect(told).toMatchObject({ reason: "INTERNAL_ERROR", metadata: { request_id: "r1" } });
      expect(`${told.message}${JSON.stringify(told.metadata)}`).not.toContain("secret");
      expect(told.message).toContain("r1");
    }
  });
});
