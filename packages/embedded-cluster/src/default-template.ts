import type { KubeObject } from "./resource-api.ts";

/** The one image name that stands for the guest agent; any other is not pulled. */
export const guestAgentImage = "holdfast.local/guest-agent:embedded";

const workspaceRoot = "/workspace";
const runFolder = "/run/holdfast";
/** Outside the workspace: what the agent keeps here is about this pod, outlives its own restarts, and goes with the pod. */
const stateFolder = "/var/lib/holdfast-agent";

/** The SandboxTemplate that is there at the first start. A template that exists is never overwritten. */
export function defaultTemplate(image: string): KubeObject {
  return {
    apiVersion: "extensions.agents.x-k8s.io/v1beta1",
    kind: "SandboxTemplate",
    metadata: { name: "default", namespace: "default" },
    spec: {
      podTemplate: { spec: podSpec(image) },
      volumeClaimTemplates: [
        {
          metadata: { name: "workspace" },
          spec: {
            volumeMode: "Filesystem",
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "10Gi" } },
          },
        },
      ],
    },
  };
}

function podSpec(image: string): unknown {
  return {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 30,
    securityContext: { runAsUser: 1001 },
    containers: [
      {
        name: "agent",
        image,
        env: [
          fromField("HOLDFAST_AGENT_TOKEN", "metadata.uid"),
          fromField("HOLDFAST_AGENT_HOST", "status.podIP"),
          { name: "HOLDFAST_WORKSPACE_ROOT", value: workspaceRoot },
          // Spelled out although it is the agent's default: a node without namespaces replaces paths that it is told.
          { name: "HOLDFAST_AGENT_SOCKET", value: `${runFolder}/agent.sock` },
          { name: "HOLDFAST_AGENT_STATE_DIR", value: stateFolder },
        ],
        ports: [{ name: "agent", containerPort: 1024, protocol: "TCP" }],
        readinessProbe: {
          exec: { command: ["/opt/holdfast/node", "/opt/holdfast/agent/ready.mjs"] },
          periodSeconds: 30, // each probe is a process, and hundreds of pods may sit idle; the first ones come quickly anyway
          timeoutSeconds: 5, // the probe is a process: on a busy machine a second is not enough
        },
        securityContext: { runAsUser: 1001, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
        volumeMounts: [
          { name: "workspace", mountPath: workspaceRoot },
          { name: "run", mountPath: runFolder },
          { name: "agent-state", mountPath: stateFolder },
        ],
      },
    ],
    volumes: [
      { name: "run", emptyDir: {} },
      { name: "agent-state", emptyDir: {} },
    ],
  };
}

function fromField(name: string, fieldPath: string): unknown {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}
