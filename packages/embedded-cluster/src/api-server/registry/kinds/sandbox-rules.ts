import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, type JsonObject } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { invalidValue, required } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";

export const sandboxRules: KindRules = {
  withDefaults: (sandbox) => withSpecDefaults(sandbox, { operatingMode: "Running", shutdownPolicy: "Retain" }),
  validate: (sandbox, old) => [
    ...blueprintCauses(sandbox.spec),
    ...enumCause(sandbox.spec, "operatingMode", ["Running", "Suspended"]),
    ...enumCause(sandbox.spec, "shutdownPolicy", ["Delete", "Retain"]),
    ...shutdownTimeCause(sandbox.spec),
    ...(old === undefined ? [] : claimTemplatesImmutable(sandbox, old)),
  ],
};

export const sandboxTemplateRules: KindRules = {
  withDefaults: (template) =>
    withSpecDefaults(template, {
      networkPolicyManagement: "Managed",
      envVarsInjectionPolicy: "Disallowed",
      volumeClaimTemplatesPolicy: "Disallowed",
    }),
  validate: (template) => [
    ...blueprintCauses(template.spec),
    ...enumCause(template.spec, "networkPolicyManagement", ["Managed", "Unmanaged"]),
    ...enumCause(template.spec, "envVarsInjectionPolicy", ["Allowed", "Overrides", "Disallowed"]),
    ...enumCause(template.spec, "volumeClaimTemplatesPolicy", ["Disallowed", "Allowed", "Overrides"]),
  ],
};

function withSpecDefaults(object: KubeObject, defaults: JsonObject): KubeObject {
  if (!isObject(object.spec)) return object;
  const spec: JsonObject = { ...object.spec };
  for (const [member, value] of Object.entries(defaults)) {
    if (spec[member] === undefined || spec[member] === null) spec[member] = value;
  }
  return { ...object, spec };
}

/** The members that Sandbox and SandboxTemplate share. */
function blueprintCauses(spec: unknown): StatusCause[] {
  if (!isObject(spec)) return [required("spec")];
  const template = spec.podTemplate;
  if (!isObject(template)) return [required("spec.podTemplate")];
  const podSpec = template.spec;
  if (!isObject(podSpec)) return [required("spec.podTemplate.spec")];
  const causes: StatusCause[] = [];
  if (!Array.isArray(podSpec.containers)) causes.push(required("spec.podTemplate.spec.containers"));
  const claims = spec.volumeClaimTemplates;
  if (claims !== undefined && !Array.isArray(claims)) {
    causes.push(
      invalidValue(
        "spec.volumeClaimTemplates",
        typeof claims,
        "spec.volumeClaimTemplates in body must be of type array",
      ),
    );
  } else {
    for (const [index, claim] of (claims ?? []).entries()) {
      if (!isObject(claim) || !isObject(claim.spec)) causes.push(required(`spec.volumeClaimTemplates[${index}].spec`));
    }
  }
  const service = spec.service;
  if (service !== undefined && typeof service !== "boolean") {
    causes.push(invalidValue("spec.service", typeof service, "spec.service in body must be of type boolean"));
  }
  return causes;
}

function enumCause(spec: unknown, member: string, allowed: readonly string[]): StatusCause[] {
  const value = isObject(spec) ? spec[member] : undefined;
  if (value === undefined || (typeof value === "string" && allowed.includes(value))) return [];
  const supported = allowed.map((item) => JSON.stringify(item)).join(", ");
  return [
    {
      reason: "FieldValueNotSupported",
      field: `spec.${member}`,
      message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`,
    },
  ];
}

function shutdownTimeCause(spec: unknown): StatusCause[] {
  const value = isObject(spec) ? spec.shutdownTime : undefined;
  if (value === undefined) return [];
  if (
    typeof value === "string" &&
    /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d/u.test(value) &&
    !Number.isNaN(Date.parse(value))
  )
    return [];
  return [invalidValue("spec.shutdownTime", value, "spec.shutdownTime in body must be of type date-time")];
}

/** The CRD's one CEL rule: set to changed, set to unset and unset to set are all refused. */
function claimTemplatesImmutable(sandbox: KubeObject, old: KubeObject): StatusCause[] {
  const now = isObject(sandbox.spec) ? sandbox.spec.volumeClaimTemplates : undefined;
  const before = isObject(old.spec) ? old.spec.volumeClaimTemplates : undefined;
  if (isDeepStrictEqual(now, before)) return [];
  return [
    {
      reason: "FieldValueInvalid",
      field: "spec",
      message: 'Invalid value: "object": volumeClaimTemplates is immutable',
    },
  ];
}
