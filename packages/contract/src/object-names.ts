/**
 * The names that stand on cluster objects. They are read back by later releases and by other tools, so they never change.
 * (docs/design/object-contract.md; spelled out literally in object-names.test.ts)
 */

export const sandboxResource = {
  group: "agents.x-k8s.io",
  version: "v1beta1",
  plural: "sandboxes",
  kind: "Sandbox",
} as const;
export const templateResource = {
  group: "extensions.agents.x-k8s.io",
  version: "v1beta1",
  plural: "sandboxtemplates",
  kind: "SandboxTemplate",
} as const;

/** A Sandbox's name is this and the workspace id; its Pod and Service are named the same. */
export const sandboxNamePrefix = "namzu-ws-";

/** Labels on a workspace's pod template. */
export const podLabels = {
  template: "sandbox.namzu.ai/template",
  egressProfile: "sandbox.namzu.ai/egress-profile",
} as const;

/** Annotations on the Sandbox. */
export const annotations = {
  /** `^(0|[1-9][0-9]*)$`, a safe integer. Absent reads as 0; anything else is unreadable, never 0. */
  holderEpoch: "sandbox.namzu.ai/holder-epoch",
  /** RFC 3339 with milliseconds; written only by a write that changes the mode. */
  modeChangedAt: "sandbox.namzu.ai/operating-mode-changed-at",
  /** `sha256:` and the hex hash of the pod template as it was written. */
  podTemplateHash: "sandbox.namzu.ai/pod-template-hash",
  /** Random per POST: read back, it proves which call created the workspace. */
  createdBy: "holdfast.dev/created-by",
  /** Random per call, in the POST and in every patch: only it, read back, proves that a write of that call landed. */
  writtenBy: "holdfast.dev/written-by",
  /** Claim name = uid, comma-separated, written with each suspend. */
  volumeClaimUids: "holdfast.dev/volume-claim-uids",
} as const;

/** The name of a Sandbox's claim. */
export function claimNameOf(templateEntry: string, sandboxName: string): string {
  return `${templateEntry}-${sandboxName}`;
}

/** The port that a guest agent listens on, on its pod's address. */
export const agentPort = 1024;

/** The label by which the sandbox controller finds its pods and Services: the hash of the Sandbox's name. */
export const sandboxNameHashLabel = "agents.x-k8s.io/sandbox-name-hash";

/** The value of that label: FNV-1a, 32 bits, as eight hex digits. Two Sandboxes can share one. */
export function sandboxNameHashOf(sandboxName: string): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(sandboxName)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** Environment of a guest's container that both sides read. */
export const agentEnv = {
  /** Where the disk is mounted. */
  workspaceRoot: "HOLDFAST_WORKSPACE_ROOT",
} as const;
