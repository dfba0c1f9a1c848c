import { type ExecutionId, isExecutionId, isWorkspaceId, type WorkspaceId } from "@holdfast/contract";
import type { ExecutionWish, OpenWish, SuspendWish, WorkspaceDeps } from "@holdfast/workspace";
import { FakeCluster } from "./fake-cluster.ts";
import { FakeGuests } from "./fake-guests.ts";
import { ManualClock } from "./manual-clock.ts";

/** Everything that a test of the domain needs, and nothing that it does not steer. */
export interface Stage {
  readonly clock: ManualClock;
  readonly cluster: FakeCluster;
  readonly guests: FakeGuests;
  readonly deps: WorkspaceDeps;
  /** What was logged. */
  readonly logged: { readonly level: "info" | "warn"; readonly facts: object; readonly message: string }[];
}

export function stage(policy: Partial<WorkspaceDeps["policy"]> = {}): Stage {
  const clock = new ManualClock();
  const cluster = new FakeCluster(clock);
  const guests = new FakeGuests(cluster);
  const logged: Stage["logged"] = [];
  let ids = 0;
  const deps: WorkspaceDeps = {
    cluster,
    guests,
    clock,
    randomId: () => {
      ids += 1;
      return `mark-${ids}`;
    },
    policy: {
      defaultTemplate: "small",
      disk: "filesystem",
      probe: "refuse",
      ingress: "unverified",
      runtimeClassName: undefined,
      ...policy,
    },
    log: {
      info: (facts, message) => logged.push({ level: "info", facts, message }),
      warn: (facts, message) => logged.push({ level: "warn", facts, message }),
    },
  };
  return { clock, cluster, guests, deps, logged };
}

/** A caller that never goes away. */
export const patient = new AbortController().signal;

export function workspaceId(text: string): WorkspaceId {
  if (!isWorkspaceId(text)) throw new Error(`not a workspace id: ${text}`);
  return text;
}

export function executionId(text: string): ExecutionId {
  if (!isExecutionId(text)) throw new Error(`not an execution id: ${text}`);
  return text;
}

export const openWish: OpenWish = { create: "if_absent", readyTimeoutMs: 300_000 };
export const suspendWish: SuspendWish = { flush: { enabled: true, timeoutMs: 10_000 }, stopTimeoutMs: 120_000 };

export function executionWish(wish: Partial<ExecutionWish> = {}): ExecutionWish {
  return {
    executionId: executionId("x1"),
    command: "echo",
    args: ["hi"],
    cwd: undefined,
    env: {},
    stdin: undefined,
    timeoutMs: undefined,
    maxOutputBytes: undefined,
    retainOutput: false,
    onDisconnect: "cancel",
    drainMs: undefined,
    leftovers: "keep",
    ...wish,
  };
}

/** Reads a stream to its end. */
export async function collect<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const all: Event[] = [];
  for await (const event of events) all.push(event);
  return all;
}
