import type { MessageInitShape } from "@bufbuild/protobuf";
import type { IdentitySchema } from "@holdfast/api/holdfast/v1/common_pb";
import {
  AgentHealth,
  GuestEvidence,
  StartStep,
  type WatchWorkspaceResponseSchema,
} from "@holdfast/api/holdfast/v1/workspace_pb";
import type { SandboxUid } from "@holdfast/contract";
import type { ChronicleEvent, GuestIdentity, StartStep as Step, WatchItem, WorkspaceEvent } from "@holdfast/workspace";
import { presentWorkspace } from "./present-workspace.ts";
import { timestampOf } from "./protobuf-time.ts";

type Response = MessageInitShape<typeof WatchWorkspaceResponseSchema>;
type Event = NonNullable<Response["event"]>;

const steps = {
  created: StartStep.CREATED,
  scheduled: StartStep.SCHEDULED,
  image_pulling: StartStep.IMAGE_PULLING,
  pod_running: StartStep.POD_RUNNING,
  bound: StartStep.BOUND,
  probed: StartStep.PROBED,
} as const satisfies Record<Step, StartStep>;

type Unconfirmed = Extract<WorkspaceEvent, { readonly t: "cancellation_unconfirmed" }>;

const healths = {
  ok: AgentHealth.OK,
  retiring: AgentHealth.RETIRING,
  unreachable: AgentHealth.UNREACHABLE,
} as const satisfies Record<Unconfirmed["agent"], AgentHealth>;

const evidences = {
  unknown: GuestEvidence.UNSPECIFIED,
  pod_gone: GuestEvidence.POD_GONE,
  pod_replaced: GuestEvidence.POD_REPLACED,
  container_restarted: GuestEvidence.CONTAINER_RESTARTED,
  same_guest: GuestEvidence.SAME_GUEST,
} as const satisfies Record<Unconfirmed["evidence"], GuestEvidence>;

/** What a watcher hears, with the cursor that resumes after it. */
export function presentWatchItem(item: WatchItem, cursor: string): Response {
  return { cursor, at: timestampOf(item.at), event: eventOf(item) };
}

function eventOf(item: WatchItem): Event {
  switch (item.t) {
    case "snapshot":
      return { case: "snapshot", value: item.view ? presentWorkspace(item.view) : { workspaceId: item.id } };
    case "gap":
      return { case: "gap", value: {} };
    case "event":
      return chronicled(item.event);
  }
}

function chronicled(event: ChronicleEvent): Event {
  switch (event.t) {
    case "changed":
      return { case: "changed", value: presentWorkspace(event.view) };
    case "progress":
      return { case: "progress", value: { step: steps[event.step], message: event.message } };
    case "epoch_changed":
      return {
        case: "epochChanged",
        value: { previous: BigInt(event.previous), current: BigInt(event.current) },
      };
    case "gone":
      return { case: "gone", value: { replaced: event.replaced } };
    case "noticed":
      return noticed(event.event, event.sandboxUid);
  }
}

function noticed(event: WorkspaceEvent, uid: SandboxUid | undefined): Event {
  if (event.t === "cancellation_unconfirmed") {
    const { executionId, agent, evidence, previous, current } = event;
    const value = {
      executionId,
      agent: healths[agent],
      evidence: evidences[evidence],
      previous: identityOf(previous, uid),
      ...(current && { current: identityOf(current, uid) }),
    };
    return { case: "cancellationUnconfirmed", value };
  }
  const { sandboxUid } = event;
  const value = { previous: identityOf(event.previous, sandboxUid), current: identityOf(event.current, sandboxUid) };
  return { case: event.t === "pod_replaced" ? "podReplaced" : "containerRestarted", value };
}

function identityOf(guest: GuestIdentity, uid: SandboxUid | undefined): MessageInitShape<typeof IdentitySchema> {
  return { sandboxUid: uid ?? "", podUid: guest.podUid, bootId: guest.bootId ?? "" };
}
