import {
  type FlushWish as FlushWishMessage,
  OnStartFailure as OnStartFailureEnum,
  type QuiesceWish as QuiesceWishMessage,
} from "@holdfast/api/holdfast/v1/common_pb";
import {
  CreatePolicy,
  type DestroyWorkspaceRequest,
  type OpenWorkspaceRequest,
  type QuiesceWorkspaceRequest,
  type ResumeWorkspaceRequest,
  type SuspendWorkspaceRequest,
} from "@holdfast/api/holdfast/v1/workspace_pb";
import {
  flushTimeoutDefaultMs,
  isWorkspaceId,
  readyTimeoutDefaultMs,
  sandboxUidOf,
  stopTimeoutDefaultMs,
  type WorkspaceId,
} from "@holdfast/contract";
import type {
  DestroyWish,
  FlushWish,
  OnStartFailure,
  OpenWish,
  QuiesceOrder,
  QuiesceWish,
  ResumeWish,
  SuspendWish,
} from "@holdfast/workspace";
import { invalidRequest } from "./interceptors/request-validation.ts";
import { type Caller, parseStartFencing, parseStopFencing } from "./parse-fencing.ts";
import { durationMs } from "./protobuf-time.ts";

/** The id of a request that has passed validation. */
export function parseWorkspaceId(text: string): WorkspaceId {
  if (isWorkspaceId(text)) return text;
  throw invalidRequest([{ field: "workspace_id", description: "is not a workspace id" }]);
}

const createPolicies = {
  [CreatePolicy.UNSPECIFIED]: "if_absent",
  [CreatePolicy.IF_ABSENT]: "if_absent",
  [CreatePolicy.MUST_EXIST]: "must_exist",
  [CreatePolicy.MUST_CREATE]: "must_create",
} as const;

const startFailures = {
  [OnStartFailureEnum.UNSPECIFIED]: undefined,
  [OnStartFailureEnum.SUSPEND_IF_WOKEN]: "suspend_if_woken",
  [OnStartFailureEnum.LEAVE]: "leave",
} as const satisfies Record<OnStartFailureEnum, OnStartFailure | undefined>;

export function parseOpen(request: OpenWorkspaceRequest, caller: Caller): OpenWish {
  return {
    fencing: parseStartFencing(request, caller),
    template: request.template || undefined,
    create: createPolicies[request.create],
    expectedSandboxUid: request.expectedSandboxUid ? sandboxUidOf(request.expectedSandboxUid) : undefined,
    onStartFailure: startFailures[request.onStartFailure],
    refreshPodTemplate: request.refreshPodTemplate,
    acceptReplacedDisk: request.acceptReplacedDisk,
    readyTimeoutMs: request.readyTimeout ? durationMs(request.readyTimeout) : readyTimeoutDefaultMs,
  };
}

export function parseResume(request: ResumeWorkspaceRequest, caller: Caller): ResumeWish {
  return {
    fencing: parseStartFencing(request, caller),
    onStartFailure: startFailures[request.onStartFailure],
    refreshPodTemplate: request.refreshPodTemplate,
    acceptReplacedDisk: request.acceptReplacedDisk,
    readyTimeoutMs: request.readyTimeout ? durationMs(request.readyTimeout) : readyTimeoutDefaultMs,
  };
}

export function parseSuspend(request: SuspendWorkspaceRequest | DestroyWorkspaceRequest, caller: Caller): SuspendWish {
  return {
    fencing: parseStopFencing(request, caller),
    quiesce: request.quiesce && parseQuiesce(request.quiesce),
    flush: parseFlush(request.flush),
    stopTimeoutMs: request.stopTimeout ? durationMs(request.stopTimeout) : stopTimeoutDefaultMs,
  };
}

export function parseDestroy(request: DestroyWorkspaceRequest, caller: Caller): DestroyWish {
  if (!request.deleteDisk) return { ...parseSuspend(request, caller), deleteDisk: false };
  const set = (["quiesce", "flush"] as const).filter((field) => request[field] !== undefined);
  if (set.length > 0) {
    const description = "cannot be set together with delete_disk: the disk goes";
    throw invalidRequest(set.map((field) => ({ field, description })));
  }
  return {
    ...parseSuspend(request, caller),
    flush: { enabled: false, timeoutMs: flushTimeoutDefaultMs },
    deleteDisk: true,
  };
}

/** What QuiesceWorkspace asks for. */
export function parseQuiesceOrder({ quiesce, hold }: QuiesceWorkspaceRequest): QuiesceOrder {
  return { graceMs: quiesce && parseQuiesce(quiesce).graceMs, holdMs: hold && durationMs(hold) };
}

function parseQuiesce({ grace }: QuiesceWishMessage): QuiesceWish {
  return { graceMs: grace && durationMs(grace) };
}

function parseFlush(flush: FlushWishMessage | undefined): FlushWish {
  return {
    enabled: flush?.enabled ?? true,
    timeoutMs: flush?.timeout ? durationMs(flush.timeout) : flushTimeoutDefaultMs,
  };
}
