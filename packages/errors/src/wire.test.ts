import { create } from "@bufbuild/protobuf";
import { anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { StatusSchema } from "@holdfast/api/google/rpc/status_pb";
import { type Reason, reasons } from "@holdfast/contract";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "./holdfast-error.ts";
import { fromStatus, toStatus } from "./wire.ts";

/** Numbers of gRPC status codes and the reasons under each, spelled out: clients have both in their code. */
const codes: Readonly<Record<number, readonly Reason[]>> = {
  2: [
    "CANCELLATION_UNCONFIRMED",
    "GUEST_GONE",
    "EXECUTION_DETACHED",
    "SESSION_OUTCOME_UNKNOWN",
    "FILE_OUTCOME_UNKNOWN",
  ],
  3: ["INVALID_REQUEST", "PAGE_TOKEN_EXPIRED"],
  4: ["SUSPEND_UNCONFIRMED", "DELETE_UNCONFIRMED", "START_TIMEOUT"],
  5: [
    "WORKSPACE_NOT_FOUND",
    "EXECUTION_NOT_FOUND",
    "EXECUTION_LOST",
    "SESSION_NOT_FOUND",
    "SESSION_LOST",
    "ATTACHMENT_NOT_FOUND",
    "FILE_NOT_FOUND",
  ],
  6: ["EXECUTION_EXISTS", "SESSION_EXISTS", "WORKSPACE_EXISTS", "FILE_EXISTS"],
  7: ["PATH_OUTSIDE_WORKSPACE", "PORT_REFUSED", "FILE_ACCESS_DENIED"],
  8: [
    "SESSION_CAPACITY",
    "EXECUTION_CAPACITY",
    "STREAM_CAPACITY",
    "WORKSPACE_CAPACITY",
    "MESSAGE_TOO_LARGE",
    "DISK_FULL",
    "WALK_LIMIT",
    "WATCH_LIMIT",
  ],
  9: [
    "WORKSPACE_SUSPENDED",
    "WORKSPACE_NOT_READY",
    "WORKSPACE_DELETING",
    "AGENT_RETIRING",
    "GUEST_TOKEN_REFUSED",
    "GUEST_FEATURE_MISSING",
    "GUEST_PROTOCOL_MISMATCH",
    "GUEST_RESTARTED",
    "OUTPUT_NOT_RETAINED",
    "ATTACHMENT_DISPLACED",
    "FILE_CHANGED",
    "NOT_REGULAR_FILE",
    "NOT_DIRECTORY",
    "DIRECTORY_NOT_EMPTY",
    "HOLDER_EPOCH_SUPERSEDED",
    "HOLDER_EPOCH_UNREADABLE",
    "HOLDER_EPOCH_REQUIRED",
    "HOLDER_EPOCH_NOT_TAKEN",
    "WORKSPACE_MISMATCH",
    "WORKSPACE_DISK_UNUSABLE",
    "GUEST_PRIVILEGED",
    "INGRESS_UNVERIFIED",
    "AGENT_ADDRESS_UNRESOLVABLE",
  ],
  10: ["QUIESCE_UNCONFIRMED", "FLUSH_UNCONFIRMED", "SUSPEND_OVERTAKEN", "WORKSPACE_REPLACED", "PORT_RESET"],
  11: ["OFFSET_OUT_OF_RANGE", "INPUT_OUT_OF_ORDER"],
  12: ["FIELD_NOT_SERVED", "STREAM_NEEDS_HTTP2"],
  13: ["CLUSTER_FORBIDDEN", "CLUSTER_WRITE_REFUSED", "INTERNAL_ERROR"],
  14: ["SESSION_DETACHED", "AGENT_UNREACHABLE", "CLUSTER_UNAVAILABLE", "SERVICE_DRAINING"],
};

const all = Object.keys(reasons) as Reason[];
const errorOf = (reason: Reason, onAttach = false) => new HoldfastError(reason, { message: "what happened", onAttach });

function retryAfterOf(error: HoldfastError): number | undefined {
  const delay = toStatus(error)
    .details.map((detail) => anyUnpack(detail, RetryInfoSchema)?.retryDelay)
    .find((found) => found !== undefined);
  return delay && Number(delay.seconds) * 1_000 + delay.nanos / 1_000_000;
}

describe("an error on the wire", () => {
  it("has the code of its reason, for every reason", () => {
    const expected = Object.entries(codes).flatMap(([code, under]) => under.map((reason) => [reason, Number(code)]));
    const actual = all.map((reason) => [reason, toStatus(errorOf(reason)).code]);
    expect(Object.fromEntries(actual)).toEqual(Object.fromEntries(expected));
  });

  it("of a call that only follows what runs may be made again: EXECUTION_DETACHED is UNAVAILABLE there, and nothing else moves", () => {
    const moved = all.filter((reason) => toStatus(errorOf(reason, true)).code !== toStatus(errorOf(reason)).code);
    expect(moved).toEqual(["EXECUTION_DETACHED"]);
    expect(toStatus(errorOf("EXECUTION_DETACHED", true)).code).toBe(14);
    expect(toStatus(errorOf("EXECUTION_DETACHED", true).withMetadata({ operation: "AttachExecution" })).code).toBe(14);
  });

  it("says when to try again exactly where that helps, and never where the outcome is not known", () => {
    const told = all.map((reason) => [reason, retryAfterOf(errorOf(reason))]).filter(([, ms]) => ms !== undefined);
    expect(Object.fromEntries(told)).toEqual({
      WORKSPACE_NOT_READY: 1_000,
      AGENT_UNREACHABLE: 1_000,
      CLUSTER_UNAVAILABLE: 2_000,
      SERVICE_DRAINING: 1_000,
      STREAM_CAPACITY: 1_000,
    });
  });

  it("carries ErrorInfo of this domain first, then every violation", () => {
    const violations = [
      { field: "a", description: "is none" },
      { field: "b.c", description: "is another" },
    ];
    const error = new HoldfastError("INVALID_REQUEST", { message: "no", metadata: { field: "a" }, violations });
    const { details, message } = toStatus(error);
    expect(message).toBe("no");
    const [info, bad] = details;
    expect(info && anyUnpack(info, ErrorInfoSchema)).toMatchObject({
      reason: "INVALID_REQUEST",
      domain: "holdfast",
      metadata: { field: "a" },
    });
    expect(bad && anyUnpack(bad, BadRequestSchema)?.fieldViolations).toMatchObject(violations);
    expect(details).toHaveLength(2);
  });

  it("is read back as it was, and as none when its domain or reason is not ours", () => {
    const error = new HoldfastError("INVALID_REQUEST", {
      message: "no",
      metadata: { field: "a" },
      violations: [{ field: "a", description: "is none" }],
    });
    const { reason, message, metadata, violations } = fromStatus(toStatus(error)) ?? errorOf("INTERNAL_ERROR");
    expect({ reason, message, metadata }).toEqual({
      reason: "INVALID_REQUEST",
      message: "no",
      metadata: { field: "a" },
    });
    expect(violations).toMatchObject([{ field: "a", description: "is none" }]);
    for (const { reason, domain } of [
      { reason: "INVALID_REQUEST", domain: "example.com" },
      { reason: "OF_A_NEWER_RELEASE", domain: "holdfast" },
      { reason: "constructor", domain: "holdfast" },
    ]) {
      const details = [anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain }))];
      expect(fromStatus(create(StatusSchema, { code: 3, message: "no", details }))).toBeUndefined();
    }
    expect(fromStatus(create(StatusSchema, { code: 3 }))).toBeUndefined();
  });

  it("keeps what it says already when more metadata is added", () => {
    const error = new HoldfastError("START_TIMEOUT", { message: "late", metadata: { pod: "a" }, cause: "why" });
    const more = error.withMetadata({ pod: "b", budget_ms: "5" });
    expect(more).toMatchObject({ metadata: { pod: "a", budget_ms: "5" }, cause: "why", message: "late" });
  });
});
