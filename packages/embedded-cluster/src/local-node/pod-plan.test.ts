import { describe, expect, it } from "vitest";
import { planPod } from "./pod-plan.ts";
import { agentPod } from "./testing/cluster.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

const volumes = [
  { name: "a", emptyDir: {} },
  { name: "b", emptyDir: {} },
];
const mounted = (...paths: string[]) =>
  agentPod("p", { volumeMounts: paths.map((mountPath, i) => ({ name: i === 0 ? "a" : "b", mountPath })) }, { volumes });

describe("a pod is refused, naming what is not supported,", () => {
  it.each([
    ["without containers", { ...agentPod("p"), spec: null }, /spec.containers is empty/],
    ["with two containers of one name", agentPod("p", {}, { initContainers: [{ name: "agent" }] }), /one name/],
    ["with a container name that is a path", agentPod("p", { name: "../x" }), /DNS label/],
    ["with a sidecar", agentPod("p", {}, { initContainers: [{ name: "i", restartPolicy: "Always" }] }), /a sidecar/],
    ["with a privileged container", agentPod("p", { securityContext: { privileged: true } }), /privileged/],
    [
      "with capabilities",
      agentPod("p", { securityContext: { capabilities: { add: ["NET_ADMIN"] } } }),
      /capabilities.add .*NET_ADMIN/,
    ],
    ["as root", agentPod("p", {}, { securityContext: { runAsUser: 0 } }), /runAsUser 0/],
    ["in the host's network", agentPod("p", {}, { hostNetwork: true }), /hostNetwork/],
    ["with a deadline", agentPod("p", {}, { activeDeadlineSeconds: 5 }), /activeDeadlineSeconds/],
    ["with readiness gates", agentPod("p", {}, { readinessGates: [{ conditionType: "x" }] }), /readinessGates/],
    ["with ephemeral containers", agentPod("p", {}, { ephemeralContainers: [{ name: "e" }] }), /ephemeralContainers/],
    ["with a postStart hook", agentPod("p", { lifecycle: { postStart: { exec: {} } } }), /postStart/],
    ["with a preStop request", agentPod("p", { lifecycle: { preStop: { httpGet: { port: 1 } } } }), /preStop/],
    ["with variables from elsewhere", agentPod("p", { envFrom: [{ secretRef: { name: "s" } }] }), /envFrom/],
    ["with a limit that is none", agentPod("p", { resources: { limits: { memory: "much" } } }), /limits.memory "much"/],
    [
      "with variables of its resources",
      agentPod("p", { env: [{ name: "X", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } }] }),
      /env X: valueFrom.resourceFieldRef/,
    ],
    ["with a host path", agentPod("p", {}, { volumes: [{ name: "v", hostPath: { path: "/" } }] }), /volume v/],
    [
      "with a volume name that is a path",
      agentPod("p", {}, { volumes: [{ name: "../x", emptyDir: {} }] }),
      /DNS label/,
    ],
    ["with a block disk", agentPod("p", { volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }), /volumeDevices/],
    ["with a mount of the host's folders", mounted("/usr/lib/x"), /\/usr/],
    ["with a mount over the agent", mounted("/opt/holdfast"), /\/opt\/holdfast/],
    ["with a mount path that climbs", mounted("/data/../etc"), /plain absolute path/],
    ["with a mount over the root", mounted("/"), /plain absolute path/],
    ["with one mount inside another", mounted("/data", "/data/inner"), /lies in/],
    [
      "with a sub path",
      agentPod("p", { volumeMounts: [{ name: "a", mountPath: "/w", subPath: "x" }] }, { volumes }),
      /subPath/,
    ],
    ["with a mount of no volume", agentPod("p", { volumeMounts: [{ name: "z", mountPath: "/w" }] }), /no volume/],
    ["with variables from a secret", agentPod("p", { env: [{ name: "X", valueFrom: { secretKeyRef: {} } }] }), /env X/],
    ["with a gRPC probe", agentPod("p", { readinessProbe: { grpc: { port: 1 } } }), /readinessProbe.grpc/],
    ["with a probe of no port", agentPod("p", { readinessProbe: { tcpSocket: { port: "none" } } }), /port "none"/],
  ])("%s", (_, pod, message) => {
    expect(() => planPod(pod)).toThrow(UnsupportedPodError);
    expect(() => planPod(pod)).toThrow(message);
  });
});

describe("a pod that is supported", () => {
  it("may have mounts beside each other whose names begin alike", () => {
    expect(planPod(mounted("/data", "/data-2")).containers[0]?.mounts.map((mount) => mount.path)).toEqual([
      "/data",
      "/data-2",
    ]);
  });
  it("has Kubernetes' defaults", () => {
    const plan = planPod({
      ...agentPod("p"),
      spec: { containers: [{ name: "c", livenessProbe: { exec: { command: ["x"] } } }] },
    });
    expect(plan).toMatchObject({ restartPolicy: "Always", graceMs: 30_000 });
    const [container] = plan.containers;
    expect(container).toMatchObject({ workingDir: "/", limits: { memoryBytes: undefined, cpus: undefined } });
    expect(container?.liveness).toMatchObject({
      periodMs: 10_000,
      timeoutMs: 1_000,
      failureThreshold: 3,
      successThreshold: 1,
    });
  });
});
