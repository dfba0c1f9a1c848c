import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { required } from "../metadata-rules.ts";
import { conform } from "../schema/conform.ts";
import { type KindSchema, readKindSchema } from "../schema/structural-schema.ts";
import { unknownFields } from "../schema/unknown-fields.ts";
import { violations } from "../schema/violations.ts";
import type { KindRules } from "./kind-rules.ts";

const sandboxSchema = readKindSchema("sandbox.json");
const templateSchema = readKindSchema("sandbox-template.json");

export const sandboxRules: KindRules = {
  withDefaults: (sandbox) => conformObject(sandboxSchema, sandbox),
  unknownFields: (body) => unknownIn(sandboxSchema, body),
  validate: (sandbox, old) => [
    ...schemaViolations(sandboxSchema, sandbox),
    ...(old === undefined ? [] : claimTemplatesImmutable(sandbox, old)),
  ],
  remark: rulesUnchecked,
};

export const sandboxTemplateRules: KindRules = {
  withDefaults: (template) => conformObject(templateSchema, template),
  unknownFields: (body) => unknownIn(templateSchema, body),
  validate: (template) => schemaViolations(templateSchema, template),
};

const topLevel = new Set(["apiVersion", "kind", "metadata", "spec", "status"]);

function unknownIn(schema: KindSchema, body: unknown): string[] {
  if (!isObject(body)) return [];
  const unknown = [
    ...Object.keys(body).filter((member) => !topLevel.has(member)),
    ...unknownFields(schema.spec, body.spec, "spec"),
    ...(schema.status === undefined ? [] : unknownFields(schema.status, body.status, "status")),
  ];
  return unknown.sort();
}

/** Prunes and defaults spec and status; members besides them are dropped. */
function conformObject(schema: KindSchema, object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, spec, status } = object;
  return {
    apiVersion,
    kind,
    metadata,
    ...(spec === undefined || spec === null ? {} : { spec: conform(schema.spec, spec) }),
    ...(status === undefined || status === null || schema.status === undefined
      ? {}
      : { status: conform(schema.status, status) }),
  };
}

function schemaViolations(schema: KindSchema, object: KubeObject): StatusCause[] {
  const ofSpec = object.spec === undefined ? [required("spec")] : violations(schema.spec, object.spec, "spec");
  const hasStatus = schema.status !== undefined && object.status !== undefined;
  return [...ofSpec, ...(hasStatus ? violations(schema.status, object.status, "status").map(asOfStatus) : [])];
}

/** A status is checked as a document of its own: the words that name a path leave out its first part. */
function asOfStatus(cause: StatusCause): StatusCause {
  return { ...cause, message: (cause.message ?? "").replace(/: status\.(\S+ in body )/u, ": $1") };
}

const blocking = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTypeInvalid",
]);

/** Where an object is wrong in its shape, the real server says that it has not looked at the CEL rules. */
function rulesUnchecked(causes: readonly StatusCause[]): StatusCause[] {
  if (!causes.some(({ reason }) => blocking.has(reason ?? ""))) return [];
  const message =
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
  return [{ reason: "FieldValueInvalid", field: "<nil>", message }];
}

/** The CRD's one CEL rule: set to changed, set to unset and unset to set are all refused. */
function claimTemplatesImmutable(sandbox: KubeObject, old: KubeObject): StatusCause[] {
  const now = isObject(sandbox.spec) ? sandbox.spec.volumeClaimTemplates : undefined;
  const before = isObject(old.spec) ? old.spec.volumeClaimTemplates : undefined;
  if (isDeepStrictEqual(now, before)) return [];
  const message = "Invalid value: volumeClaimTemplates is immutable";
  return [{ reason: "FieldValueInvalid", field: "spec", message }];
}
