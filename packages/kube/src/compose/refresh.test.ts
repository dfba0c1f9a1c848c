import { isWorkspaceId } from "@holdfast/contract";
import type { SandboxReading, TemplateReading } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { readSandboxObject } from "../objects/sandbox.ts";
import { readTemplateObject } from "../objects/template.ts";
import { sandboxJson, templateJson } from "../testing/fixtures.ts";
import { composeModePatch } from "./mode-patch.ts";
import { composeSandbox } from "./new-sandbox.ts";
import { refreshedSandbox, withRevision, writtenPodTemplate } from "./refresh.ts";

const sleeping = (changes: Parameters<typeof sandboxJson>[0] = {}): SandboxReading =>
  readSandboxObject(sandboxJson({ ...changes, spec: { ...changes.spec, operatingMode: "Suspended" } }), "block");

const template = (
  runtimeClassName?: string,
  edit: (json: ReturnType<typeof templateJson>) => void = () => undefined,
) => {
  const json = templateJson();
  edit(json);
  return withRevision(readTemplateObject(json, "block"), runtimeClassName);
};

const refreshOf = (reading: SandboxReading, refresh: TemplateReading, runtimeClassName?: string) =>
  composeModePatch(
    { reading, mode: "Running", refresh, writtenBy: "me", epoch: undefined, volumeClaimUids: undefined, now: 1_000 },
    runtimeClassName,
  );

describe("L31 the patch of a refresh", () => {
  it("is one patch that tests the mode, and writes stamp, hash, the whole pod template, and the mode last", () => {
    const current = template();
    const patch = refreshOf(sleeping(), current);
    expect(patch).toContainEqual({ op: "test", path: "/spec/operatingMode", value: "Suspended" });
    expect(patch.filter(({ op }) => op === "add").map(({ path }) => path)).toEqual([
      "/metadata/annotations/holdfast.dev~1written-by",
      "/metadata/annotations/sandbox.namzu.ai~1operating-mode-changed-at",
      "/metadata/annotations/sandbox.namzu.ai~1pod-template-hash",
      "/spec/podTemplate",
      "/spec/operatingMode",
    ]);
    expect(patch.find(({ path }) => path === "/spec/podTemplate")?.value).toEqual(
      writtenPodTemplate(current, undefined),
    );
  });

  it("writes the pod template whole, so that what the template no longer has disappears, and never the claims", () => {
    const reading = sleeping({ spec: { podTemplate: { spec: { nodeSelector: { old: "yes" }, containers: [] } } } });
    const text = JSON.stringify(refreshOf(reading, template()));
    expect(text).not.toContain("nodeSelector");
    expect(text).not.toContain("volumeClaimTemplates");
  });

  it("adds the whole map of annotations where there is none, under the resourceVersion, and still tests the mode", () => {
    const current = template();
    const patch = refreshOf(sleeping({ metadata: { annotations: undefined } }), current);
    expect(patch.filter(({ op }) => op === "test").map(({ path }) => path)).toEqual([
      "/metadata/uid",
      "/metadata/resourceVersion",
      "/spec/operatingMode",
    ]);
    expect(patch.find(({ path }) => path === "/metadata/annotations")?.value).toMatchObject({
      "sandbox.namzu.ai/pod-template-hash": current.revision,
    });
  });

  it("writes the configured runtime class over the template's, and the template's label", () => {
    const current = template("kata", (json) => Object.assign(json.spec.podTemplate.spec, { runtimeClassName: "runc" }));
    expect(
      refreshOf(sleeping(), current, "kata").find(({ path }) => path === "/spec/podTemplate")?.value,
    ).toMatchObject({
      metadata: { labels: { "sandbox.namzu.ai/template": current.name } },
      spec: { runtimeClassName: "kata" },
    });
  });

  it.each([undefined, "kata"])("has the hash that a create would stamp (runtime class %s)", (runtimeClassName) => {
    const id = "one";
    if (!isWorkspaceId(id)) throw new Error("not an id");
    const current = template(runtimeClassName);
    const wish = { id, template: current, createdBy: "c", writtenBy: "w", epoch: undefined };
    expect(composeSandbox(wish, "team-a", runtimeClassName).metadata).toMatchObject({
      annotations: { "sandbox.namzu.ai/pod-template-hash": current.revision },
    });
  });

  it("is refused to be composed for a workspace that runs", () => {
    expect(() => refreshOf(readSandboxObject(sandboxJson(), "block"), template())).toThrow(TypeError);
  });
});

describe("L31 the Sandbox as it would be written", () => {
  it("has the template's pod template and its own claims", () => {
    expect(refreshedSandbox(sleeping(), template(), "block", undefined)).toMatchObject({
      disk: { usable: true },
      extraClaims: [],
      droppedClaims: [],
    });
  });

  it("names the claims that the template has and it lacks, and those that it would lose, by name alone", () => {
    const current = template(undefined, (json) => {
      const [claim] = json.spec.volumeClaimTemplates;
      if (!claim) throw new Error("the fixture has a claim");
      json.spec.volumeClaimTemplates = [{ ...claim, metadata: { name: "scratch" } }];
    });
    expect(refreshedSandbox(sleeping(), current, "block", undefined)).toMatchObject({
      extraClaims: ["scratch"],
      droppedClaims: ["disk"],
    });
  });

  it("has no usable disk where the template's pod no longer uses it", () => {
    const current = template(undefined, (json) => {
      for (const container of json.spec.podTemplate.spec.containers) container.volumeDevices = [];
    });
    expect(refreshedSandbox(sleeping(), current, "block", undefined).disk).toMatchObject({
      usable: false,
      claims: ["disk"],
    });
  });
});
