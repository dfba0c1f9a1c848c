import { describe, expect, it } from "vitest";
import {
  agentEnv,
  agentPort,
  annotations,
  claimNameOf,
  podLabels,
  sandboxNameHashLabel,
  sandboxNameHashOf,
  sandboxNamePrefix,
  sandboxResource,
  templateResource,
} from "./object-names.ts";

describe("the names on cluster objects never change", () => {
  it("group, version, plural and kind of a Sandbox", () => {
    expect(sandboxResource).toStrictEqual({
      group: "agents.x-k8s.io",
      version: "v1beta1",
      plural: "sandboxes",
      kind: "Sandbox",
    });
  });

  it("group, version, plural and kind of a SandboxTemplate", () => {
    expect(templateResource).toStrictEqual({
      group: "extensions.agents.x-k8s.io",
      version: "v1beta1",
      plural: "sandboxtemplates",
      kind: "SandboxTemplate",
    });
  });

  it("the prefix of a Sandbox's name", () => {
    expect(sandboxNamePrefix).toBe("namzu-ws-");
  });

  it("the labels on a pod template", () => {
    expect(podLabels).toStrictEqual({
      template: "sandbox.namzu.ai/template",
      egressProfile: "sandbox.namzu.ai/egress-profile",
    });
  });

  it("the annotations on a Sandbox", () => {
    expect(annotations).toStrictEqual({
      holderEpoch: "sandbox.namzu.ai/holder-epoch",
      modeChangedAt: "sandbox.namzu.ai/operating-mode-changed-at",
      podTemplateHash: "sandbox.namzu.ai/pod-template-hash",
      createdBy: "holdfast.dev/created-by",
      writtenBy: "holdfast.dev/written-by",
      volumeClaimUids: "holdfast.dev/volume-claim-uids",
    });
  });

  it("the name of a claim", () => {
    expect(claimNameOf("disk", "namzu-ws-one")).toBe("disk-namzu-ws-one");
  });

  it("the agent's port and environment", () => {
    expect(agentPort).toBe(1024);
    expect(agentEnv).toStrictEqual({ workspaceRoot: "HOLDFAST_WORKSPACE_ROOT" });
  });

  it("the label by which the controller finds pods, with its published vectors", () => {
    expect(sandboxNameHashLabel).toBe("agents.x-k8s.io/sandbox-name-hash");
    expect(sandboxNameHashOf("a")).toBe("e40c292c");
    expect(sandboxNameHashOf("my-sandbox")).toBe("374de8f5");
  });
});
