import { type Clock, Deadline, systemClock } from "@holdfast/async";
import { connectKube, type KubeOptions } from "../connect-kube.ts";
import type { KubeCluster } from "../kube-cluster.ts";
import type { LogSink } from "../log-sink.ts";
import type { ScriptedApi } from "./scripted-api.ts";

/** Time that runs faster than the machine's, so that waits of seconds take milliseconds. */
export function acceleratedClock(factor: number): Clock {
  return {
    now: () => systemClock.now(),
    monotonicMs: () => systemClock.monotonicMs() * factor,
    schedule: (afterMs, run) => systemClock.schedule(afterMs / factor, run),
  };
}

/** Keeps what was logged. */
export class LogRecord implements LogSink {
  readonly lines: string[] = [];
  info(message: string): void {
    this.lines.push(`info ${message}`);
  }
  warn(message: string): void {
    this.lines.push(`warn ${message}`);
  }
  error(message: string): void {
    this.lines.push(`error ${message}`);
  }
}

/** A client of the scripted server. */
export function clientOf(api: ScriptedApi, more: Partial<KubeOptions> = {}): Promise<KubeCluster> {
  return connectKube({ access: { kubeconfigPath: api.kubeconfigPath }, disk: "block", log: new LogRecord(), ...more });
}

/** Long enough for anything on loopback. */
export function soon(clock: Clock = systemClock, budgetMs = 10_000): Deadline {
  return new Deadline(clock, budgetMs);
}

export const uid = "11111111-2222-3333-4444-555555555555";

/** A Sandbox as an API server sends it, with everything of ours on it. */
export function sandboxJson(
  changes: { readonly metadata?: object; readonly spec?: object; readonly status?: object } = {},
) {
  return {
    apiVersion: "agents.x-k8s.io/v1beta1",
    kind: "Sandbox",
    metadata: {
      name: "namzu-ws-one",
      namespace: "team-a",
      uid,
      resourceVersion: "41",
      generation: 3,
      creationTimestamp: "2026-01-02T03:04:05Z",
      annotations: {
        "holdfast.dev/created-by": "call-0",
        "holdfast.dev/written-by": "call-1",
        "sandbox.namzu.ai/holder-epoch": "3",
        "sandbox.namzu.ai/operating-mode-changed-at": "2026-01-02T03:04:05.678Z",
        "sandbox.namzu.ai/pod-template-hash": "sha256:aa",
      },
      ...changes.metadata,
    },
    spec: {
      operatingMode: "Running",
      service: true,
      podTemplate: {
        metadata: { labels: { "sandbox.namzu.ai/template": "standard" } },
        spec: {
          containers: [
            {
              name: "agent",
              image: "agent:1",
              env: [{ name: "HOLDFAST_WORKSPACE_ROOT", value: "/home/me" }],
              volumeDevices: [{ name: "disk", devicePath: "/dev/workspace" }],
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "disk" },
          spec: { volumeMode: "Block", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      ],
      ...changes.spec,
    },
    status: {
      conditions: [
        { type: "Suspended", status: "False", observedGeneration: 2 },
        { type: "Ready", status: "True", observedGeneration: 3 },
      ],
      ...changes.status,
    },
  };
}

/** A template with one Block disk. */
export function templateJson() {
  const { podTemplate, volumeClaimTemplates } = sandboxJson().spec;
  const labels = { team: "blue", "sandbox.namzu.ai/template": "forged" };
  return {
    apiVersion: "extensions.agents.x-k8s.io/v1beta1",
    kind: "SandboxTemplate",
    metadata: { name: "standard", namespace: "team-a", uid: "t", resourceVersion: "7" },
    spec: {
      podTemplate: { ...podTemplate, metadata: { labels, annotations: { note: "kept" } } },
      volumeClaimTemplates,
    },
  };
}

/** A pod of that Sandbox. */
export function podJson(
  changes: { readonly metadata?: object; readonly spec?: object; readonly status?: object } = {},
) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "namzu-ws-one",
      uid: "pod-uid-1",
      resourceVersion: "50",
      labels: { "agents.x-k8s.io/sandbox-name-hash": "00000000" },
      ownerReferences: [
        { apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", name: "namzu-ws-one", uid, controller: true },
      ],
      ...changes.metadata,
    },
    spec: {
      nodeName: "node-1",
      terminationGracePeriodSeconds: 30,
      containers: [{ name: "agent", image: "agent:1" }],
      ...changes.spec,
    },
    status: {
      phase: "Running",
      podIP: "10.0.0.7",
      conditions: [
        { type: "PodScheduled", status: "True" },
        { type: "Ready", status: "True" },
      ],
      containerStatuses: [{ name: "agent", ready: true, restartCount: 0, state: { running: {} } }],
      ...changes.status,
    },
  };
}
