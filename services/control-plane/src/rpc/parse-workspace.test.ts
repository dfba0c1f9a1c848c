import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { OnStartFailure } from "@holdfast/api/holdfast/v1/common_pb";
import {
  CreatePolicy,
  DestroyWorkspaceRequestSchema,
  OpenWorkspaceRequestSchema,
  QuiesceWorkspaceRequestSchema,
  ResumeWorkspaceRequestSchema,
  SuspendWorkspaceRequestSchema,
} from "@holdfast/api/holdfast/v1/workspace_pb";
import { describe, expect, it } from "vitest";
import type { Caller } from "./parse-fencing.ts";
import { parseDestroy, parseOpen, parseQuiesceOrder, parseResume, parseSuspend } from "./parse-workspace.ts";

const caller: Caller = { peer: "10.0.0.7:5", header: () => undefined };
type Init<Schema extends DescMessage> = Partial<MessageInitShape<Schema>>;

const open = (init: Init<typeof OpenWorkspaceRequestSchema> = {}) =>
  parseOpen(create(OpenWorkspaceRequestSchema, { workspaceId: "w", ...init } as never), caller);
const resume = (init: Init<typeof ResumeWorkspaceRequestSchema> = {}) =>
  parseResume(create(ResumeWorkspaceRequestSchema, { workspaceId: "w", ...init } as never), caller);
const suspend = (init: Init<typeof SuspendWorkspaceRequestSchema> = {}) =>
  parseSuspend(create(SuspendWorkspaceRequestSchema, { workspaceId: "w", ...init } as never), caller);
const destroy = (init: Init<typeof DestroyWorkspaceRequestSchema> = {}) =>
  parseDestroy(create(DestroyWorkspaceRequestSchema, { workspaceId: "w", ...init } as never), caller);

const refusing = (...fields: string[]) =>
  expect.objectContaining({
    reason: "INVALID_REQUEST",
    violations: fields.map((field) => expect.objectContaining({ field })),
  });

describe("what a call asks for when it does not say", () => {
  it("L8 L18 OpenWorkspace: creates if absent, the default template, any Sandbox, 5 min, no epoch, nothing more", () => {
    expect(open()).toEqual({
      fencing: { t: "none" },
      template: undefined,
      create: "if_absent",
      expectedSandboxUid: undefined,
      onStartFailure: undefined,
      refreshPodTemplate: false,
      acceptReplacedDisk: false,
      readyTimeoutMs: 300_000,
    });
  });

  it("L18 L19 ResumeWorkspace: 5 min, and what the handle was opened with on a failure", () => {
    expect(resume()).toEqual({
      fencing: { t: "none" },
      onStartFailure: undefined,
      refreshPodTemplate: false,
      acceptReplacedDisk: false,
      readyTimeoutMs: 300_000,
    });
  });

  it("L18 L26 L27 SuspendWorkspace: 2 min, a flush of 10 s, no quiesce", () => {
    expect(suspend()).toEqual({
      fencing: { t: "none" },
      quiesce: undefined,
      flush: { enabled: true, timeoutMs: 10_000 },
      stopTimeoutMs: 120_000,
    });
  });

  it("L4 DestroyWorkspace: exactly a suspend, and nothing is deleted", () => {
    expect(destroy()).toEqual({ ...suspend(), deleteDisk: false });
  });

  it("QuiesceWorkspace: the guest's own grace, and no hold", () => {
    expect(parseQuiesceOrder(create(QuiesceWorkspaceRequestSchema, {}))).toEqual({
      graceMs: undefined,
      holdMs: undefined,
    });
  });
});

describe("what a call asks for", () => {
  it.each([
    [CreatePolicy.UNSPECIFIED, "if_absent"],
    [CreatePolicy.IF_ABSENT, "if_absent"],
    [CreatePolicy.MUST_EXIST, "must_exist"],
    [CreatePolicy.MUST_CREATE, "must_create"],
  ] as const)("L8 the policy %i is %s", (wire, policy) => {
    expect(open({ create: wire }).create).toBe(policy);
  });

  it.each([
    [OnStartFailure.UNSPECIFIED, undefined],
    [OnStartFailure.SUSPEND_IF_WOKEN, "suspend_if_woken"],
    [OnStartFailure.LEAVE, "leave"],
  ] as const)("L19 on_start_failure %i is %s, on Open as on Resume", (wire, wish) => {
    expect([open({ onStartFailure: wire }).onStartFailure, resume({ onStartFailure: wire }).onStartFailure]).toEqual([
      wish,
      wish,
    ]);
  });

  it("is passed on whole, a time of less than a millisecond as one", () => {
    const readyTimeout = { seconds: 0n, nanos: 1 };
    const more = { refreshPodTemplate: true, acceptReplacedDisk: true, readyTimeout };
    expect(open({ ...more, template: "small", expectedSandboxUid: "u" })).toMatchObject({
      template: "small",
      expectedSandboxUid: "u",
      refreshPodTemplate: true,
      acceptReplacedDisk: true,
      readyTimeoutMs: 1,
    });
    expect(resume(more)).toMatchObject({ refreshPodTemplate: true, acceptReplacedDisk: true, readyTimeoutMs: 1 });
    expect(suspend({ stopTimeout: { seconds: 3600n, nanos: 0 } }).stopTimeoutMs).toBe(3_600_000);
  });

  it.each([
    [{}, { enabled: true, timeoutMs: 10_000 }],
    [{ enabled: true }, { enabled: true, timeoutMs: 10_000 }],
    [{ enabled: false }, { enabled: false, timeoutMs: 10_000 }],
    [{ timeout: { seconds: 600n, nanos: 0 } }, { enabled: true, timeoutMs: 600_000 }],
    [
      { enabled: false, timeout: { seconds: 1n, nanos: 0 } },
      { enabled: false, timeoutMs: 1_000 },
    ],
  ])("L26 a flush of %o is %o: only a present false declines it", (flush, wish) => {
    expect([suspend({ flush }).flush, destroy({ flush }).flush]).toEqual([wish, wish]);
  });

  it("L27 a quiesce is asked for by its presence; a present grace of 0 is one", () => {
    expect(suspend({ quiesce: {} }).quiesce).toEqual({ graceMs: undefined });
    expect(destroy({ quiesce: { grace: { seconds: 0n, nanos: 0 } } }).quiesce).toEqual({ graceMs: 0 });
  });
});

describe("L28 a destroy with delete_disk", () => {
  it("has its own deadline, and neither flush nor quiesce", () => {
    const stopTimeout = { seconds: 7n, nanos: 0 };
    expect(destroy({ deleteDisk: true, stopTimeout })).toMatchObject({
      deleteDisk: true,
      stopTimeoutMs: 7_000,
      quiesce: undefined,
      flush: { enabled: false },
    });
  });

  it.each([
    [{ quiesce: {} }, ["quiesce"]],
    [{ flush: {} }, ["flush"]],
    [{ flush: { enabled: false } }, ["flush"]],
    [{ flush: { enabled: true }, quiesce: {} }, ["quiesce", "flush"]],
  ] as const)("refuses %o by name, whatever it says", (wish, fields) => {
    expect(() => destroy({ deleteDisk: true, ...wish })).toThrow(refusing(...fields));
  });
});
