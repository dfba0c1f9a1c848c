import { type Json, textAt } from "./json.ts";
import type { Stage } from "./stage.ts";

/** A node that no cluster has: a pod born on it is nobody's, so the case plays its kubelet. */
export const nobodysNode = "conformance-no-such-node";

export interface PodMetadata {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A Sandbox whose pods run only by the case's word. */
export function sandboxObject(name: string, spec: object = {}, metadata: object = {}): object {
  return {
    apiVersion: "agents.x-k8s.io/v1beta1",
    kind: "Sandbox",
    metadata: { name, ...metadata },
    spec: { podTemplate: podTemplate(), ...spec },
  };
}

export function podTemplate(spec: object = {}, metadata?: PodMetadata): object {
  return { ...(metadata === undefined ? {} : { metadata }), spec: handmadePodSpec(spec) };
}

export function handmadePodSpec(spec: object = {}): object {
  return {
    nodeName: nobodysNode,
    terminationGracePeriodSeconds: 25,
    automountServiceAccountToken: false,
    containers: [{ name: "agent", image: "example.invalid/agent:1" }],
    ...spec,
  };
}

/** A pod on nobody's node. */
export function podObject(name: string, spec: object = {}, metadata: object = {}): object {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, ...metadata }, spec: handmadePodSpec(spec) };
}

/** A pod that no scheduler places. */
export function unboundPodObject(name: string, spec: object = {}, metadata: object = {}): object {
  return podObject(name, { nodeName: undefined, schedulerName: "conformance-nobody", ...spec }, metadata);
}

export function secretObject(name: string, metadata: object = {}): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, ...metadata } };
}

export function claimSpec(storage = "1Gi"): object {
  return { accessModes: ["ReadWriteOnce"], storageClassName: "conformance-none", resources: { requests: { storage } } };
}

export function claimObject(name: string, spec: object = {}, metadata: object = {}): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, ...metadata },
    spec: { ...claimSpec(), ...spec },
  };
}

export function ownerOf(object: Json, more: object = {}): object {
  const [apiVersion, kind] = [textAt(object, "apiVersion"), textAt(object, "kind")];
  const [name, uid] = [textAt(object, "metadata", "name"), textAt(object, "metadata", "uid")];
  return { apiVersion, kind, name, uid, ...more };
}

/** Plays the kubelet of nobody's node for a pod. */
export function kubeletOf(stage: Stage, name: string, ip = "10.9.8.7") {
  const now = () => new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const report = (status: object) => stage.merge("pods", name, { status }, "status");
  const condition = (type: string, status: string) => ({ type, status, lastTransitionTime: now() });
  return {
    report,
    /** Running and ready, with an address. */
    run: () =>
      report({
        phase: "Running",
        podIP: ip,
        podIPs: [{ ip }],
        conditions: [condition("PodScheduled", "True"), condition("Ready", "True")],
      }),
    runUnready: () =>
      report({
        phase: "Running",
        podIP: ip,
        podIPs: [{ ip }],
        conditions: [condition("PodScheduled", "True"), condition("Ready", "False")],
      }),
    end: (phase: "Succeeded" | "Failed", more: object = {}) =>
      report({ phase, conditions: [condition("PodScheduled", "True"), condition("Ready", "False")], ...more }),
    /** Confirms that a terminating pod is gone. */
    finish: () => stage.do("DELETE", stage.path("pods", name), { body: { gracePeriodSeconds: 0 } }),
  };
}
