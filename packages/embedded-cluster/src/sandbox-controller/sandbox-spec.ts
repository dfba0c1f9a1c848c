import { isObject, type JsonObject, listIn, objectIn, stringIn } from "../json.ts";
import type { KubeObject } from "../resource-api.ts";

/** What the controller reads of a Sandbox's spec. */
export interface SandboxSpec {
  readonly mode: "Running" | "Suspended";
  /** Unset is not false. */
  readonly service: boolean | undefined;
  readonly podSpec: JsonObject;
  readonly podLabels: Record<string, string>;
  readonly podAnnotations: Record<string, string>;
  readonly claimTemplates: readonly ClaimTemplate[];
  readonly shutdownAtMs: number | undefined;
  readonly shutdownPolicy: "Delete" | "Retain";
}

export interface ClaimTemplate {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
  readonly spec: unknown;
}

export function readSandboxSpec(sandbox: KubeObject): SandboxSpec {
  const { spec } = sandbox;
  const template = objectIn(spec, "podTemplate");
  const service = isObject(spec) ? spec.service : undefined;
  const shutdownAtMs = Date.parse(stringIn(spec, "shutdownTime") ?? "");
  return {
    mode: stringIn(spec, "operatingMode") === "Suspended" ? "Suspended" : "Running",
    service: typeof service === "boolean" ? service : undefined,
    podSpec: objectIn(template, "spec") ?? {},
    podLabels: stringsIn(objectIn(template, "metadata"), "labels"),
    podAnnotations: stringsIn(objectIn(template, "metadata"), "annotations"),
    claimTemplates: listIn(spec, "volumeClaimTemplates").map((item) => ({
      name: stringIn(objectIn(item, "metadata"), "name") ?? "",
      labels: stringsIn(objectIn(item, "metadata"), "labels"),
      annotations: stringsIn(objectIn(item, "metadata"), "annotations"),
      spec: objectIn(item, "spec") ?? {},
    })),
    shutdownAtMs: Number.isNaN(shutdownAtMs) ? undefined : shutdownAtMs,
    shutdownPolicy: stringIn(spec, "shutdownPolicy") === "Delete" ? "Delete" : "Retain",
  };
}

function stringsIn(value: unknown, member: string): Record<string, string> {
  const entries = Object.entries(objectIn(value, member) ?? {});
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}
