import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type ContainerTerminationSchema,
  type DiskUseSchema,
  FlushOutcome,
  type FlushReportSchema,
  type GuestHealthSchema,
  Origin,
  type PodFactsSchema,
  QuiesceOutcome,
  type QuiesceReportSchema,
  QuiesceScope,
  type StoppedProcessSchema,
  type WorkspaceSchema,
  WorkspaceState,
} from "@holdfast/api/holdfast/v1/common_pb";
import { quiescedNamedMax } from "@holdfast/contract";
import type {
  ContainerTermination,
  DiskUse,
  FlushReport,
  GuestHealth,
  PodFacts,
  QuiesceReport,
  StoppedProcess,
  StopReports,
  WorkspaceView,
} from "@holdfast/workspace";
import { durationOf, timestampOf } from "./protobuf-time.ts";

const states = {
  starting: WorkspaceState.STARTING,
  running: WorkspaceState.RUNNING,
  suspending: WorkspaceState.SUSPENDING,
  suspended: WorkspaceState.SUSPENDED,
  deleting: WorkspaceState.DELETING,
  not_ready: WorkspaceState.NOT_READY,
} as const satisfies Record<WorkspaceView["state"], WorkspaceState>;

const origins = {
  created: Origin.CREATED,
  adopted_running: Origin.ADOPTED_RUNNING,
  resumed: Origin.RESUMED,
  already_open: Origin.ALREADY_OPEN,
} as const satisfies Record<NonNullable<WorkspaceView["origin"]>, Origin>;

const flushOutcomes = {
  flushed: FlushOutcome.FLUSHED,
  unsupported: FlushOutcome.UNSUPPORTED,
  unreachable: FlushOutcome.UNREACHABLE,
  skipped: FlushOutcome.SKIPPED,
} as const satisfies Record<FlushReport["outcome"], FlushOutcome>;

/** A workspace as callers see it. */
export function presentWorkspace(view: WorkspaceView, health?: GuestHealth): MessageInitShape<typeof WorkspaceSchema> {
  const { transition, identity, pod } = view;
  return {
    workspaceId: view.id,
    state: states[view.state],
    transition: {
      cause: transition.cause,
      ...(transition.at === undefined ? {} : { at: timestampOf(transition.at) }),
      waitingFor: transition.waitingFor ?? "",
      ...(transition.epoch === undefined ? {} : { byEpoch: BigInt(transition.epoch) }),
    },
    origin: view.origin ? origins[view.origin] : Origin.UNSPECIFIED,
    identity: {
      sandboxUid: identity.sandboxUid ?? "",
      claimUids: { ...identity.claimUids },
      podUid: identity.podUid ?? "",
      bootId: identity.bootId ?? "",
    },
    template: view.template ?? "",
    templateRevision: view.templateRevision ?? "",
    templateCurrent: view.templateCurrent,
    root: view.root ?? "",
    ...(view.holderEpoch === undefined ? {} : { holderEpoch: BigInt(view.holderEpoch) }),
    ...(pod && { pod: presentPod(pod) }),
    liveExecutions: view.live.executions,
    liveSessions: view.live.sessions,
    livePorts: view.live.ports,
    ...(health && { health: presentHealth(health) }),
  };
}

function presentPod(pod: PodFacts): MessageInitShape<typeof PodFactsSchema> {
  const { name, image, node = "", restartCount, lastTermination = "", termination, use } = pod;
  return {
    name,
    image,
    node,
    restartCount,
    lastTermination,
    ...(termination && { termination: presentTermination(termination) }),
    ...(use?.disk && { disk: presentDisk(use.disk) }),
    ...(use?.memory && { memory: { ...use.memory } }),
  };
}

function presentTermination(ended: ContainerTermination): MessageInitShape<typeof ContainerTerminationSchema> {
  const { reason = "", exitCode, finishedAt } = ended;
  return { reason, exitCode, ...(finishedAt && { finishedAt: timestampOf(finishedAt.getTime()) }) };
}

function presentDisk({ inodes, ...bytes }: DiskUse): MessageInitShape<typeof DiskUseSchema> {
  return { ...bytes, ...(inodes && { totalInodes: inodes.total, usedInodes: inodes.used }) };
}

function presentHealth(health: GuestHealth): MessageInitShape<typeof GuestHealthSchema> {
  const { serving, protocolVersion, features, bootId } = health;
  return { serving, protocolVersion, features: [...features], bootId };
}

const quiesceOutcomes = {
  quiesced: QuiesceOutcome.QUIESCED,
  unsupported: QuiesceOutcome.UNSUPPORTED,
  skipped: QuiesceOutcome.SKIPPED,
} as const satisfies Record<QuiesceReport["outcome"], QuiesceOutcome>;

const quiesceScopes = {
  pid_namespace: QuiesceScope.PID_NAMESPACE,
  owned_sessions: QuiesceScope.OWNED_SESSIONS,
} as const satisfies Record<NonNullable<QuiesceReport["scope"]>, QuiesceScope>;

/** What became of a stop's quiesce and flush; without a quiesce where none was asked for. */
export function presentStopReports({ flush, quiesce }: StopReports) {
  return { flush: presentFlush(flush), ...(quiesce && { quiesce: presentQuiesce(quiesce) }) };
}

/** What became of a quiesce. */
export function presentQuiesce(report: QuiesceReport): MessageInitShape<typeof QuiesceReportSchema> {
  const { outcome, cause, scope, rounds, stoppedCount } = report;
  return {
    outcome: quiesceOutcomes[outcome],
    cause,
    scope: scope === undefined ? QuiesceScope.UNSPECIFIED : quiesceScopes[scope],
    rounds,
    stoppedCount,
    stopped: report.stopped.slice(0, quiescedNamedMax).map(presentStopped),
    notReached: report.notReached.slice(0, quiescedNamedMax).map(presentStopped),
  };
}

function presentStopped({ pid, name, lastSignal }: StoppedProcess): MessageInitShape<typeof StoppedProcessSchema> {
  return { pid: BigInt(pid), name, lastSignal };
}

/** What became of a flush. */
function presentFlush(report: FlushReport): MessageInitShape<typeof FlushReportSchema> {
  return {
    outcome: flushOutcomes[report.outcome],
    cause: report.cause,
    ...(report.tookMs === undefined ? {} : { took: durationOf(report.tookMs) }),
  };
}
