import { type DescField, type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { ExecuteRequestSchema, RunCommandRequestSchema } from "@holdfast/api/holdfast/v1/execution_pb";
import {
  MakeDirectoryRequestSchema,
  MoveFileRequestSchema,
  RemoveFileRequestSchema,
  WriteFileStartSchema,
} from "@holdfast/api/holdfast/v1/file_pb";
import {
  DeleteWorkspaceRequestSchema,
  InventoryServiceSuspendWorkspaceRequestSchema,
} from "@holdfast/api/holdfast/v1/inventory_pb";
import {
  DestroyWorkspaceRequestSchema,
  OpenWorkspaceRequestSchema,
  ResumeWorkspaceRequestSchema,
  SuspendWorkspaceRequestSchema,
} from "@holdfast/api/holdfast/v1/workspace_pb";
import { HoldfastError } from "@holdfast/errors";
import type { CallContext } from "../call-context.ts";

/**
 * Declared fields that this release refuses when they are set, and never ignores.
 * The same list as the protos' "Not served yet" (fields-not-served.test.ts).
 */
export const fieldsNotServed = new Map<DescMessage, readonly string[]>([
  [OpenWorkspaceRequestSchema, ["epoch", "take_over", "refresh_pod_template", "accept_replaced_disk"]],
  [SuspendWorkspaceRequestSchema, ["epoch", "ignore_fence", "quiesce"]],
  [ResumeWorkspaceRequestSchema, ["epoch", "take_over", "refresh_pod_template", "accept_replaced_disk"]],
  [DestroyWorkspaceRequestSchema, ["epoch", "ignore_fence", "quiesce"]],
  [ExecuteRequestSchema, ["epoch", "expected_boot_id"]],
  [RunCommandRequestSchema, ["epoch", "expected_boot_id"]],
  [InventoryServiceSuspendWorkspaceRequestSchema, ["epoch", "ignore_fence"]],
  [DeleteWorkspaceRequestSchema, ["epoch", "ignore_fence"]],
  [WriteFileStartSchema, ["epoch"]],
  [MakeDirectoryRequestSchema, ["epoch"]],
  [RemoveFileRequestSchema, ["epoch"]],
  [MoveFileRequestSchema, ["epoch"]],
]);

/** Request headers that stand for such a field. */
const headersNotServed = ["holdfast-epoch"];

const descriptors = new Map<DescMessage, readonly DescField[]>(
  [...fieldsNotServed].map(([message, names]) => [message, names.map((name) => fieldOf(message, name))]),
);

/** Throws FIELD_NOT_SERVED naming every set field and header that this release does not serve. */
export function assertFieldsServed(schema: DescMessage, request: Message, context: CallContext): void {
  const set = setButNotServed(schema, request, "");
  const sent = headersNotServed.filter((name) => context.header(name) !== undefined);
  if (set.length === 0 && sent.length === 0) return;
  const all = [...set, ...sent.map((name) => `metadata ${name}`)];
  const violations = all.map((field) => ({ field, description: "is declared, but not served by this release" }));
  throw new HoldfastError("FIELD_NOT_SERVED", {
    message: `The call was not carried out: this release does not serve ${all.join(", ")}. Leave it out.`,
    metadata: { fields: all.join(",") },
    violations,
  });
}

/** By path, also in the messages within. */
function setButNotServed(schema: DescMessage, message: Message, path: string): string[] {
  const set = (descriptors.get(schema) ?? [])
    .filter((field) => isFieldSet(message, field))
    .map(({ name }) => path + name);
  for (const field of schema.fields) {
    if (field.fieldKind !== "message" || !isFieldSet(message, field)) continue;
    set.push(...setButNotServed(field.message, reflect(schema, message).get(field).message, `${path}${field.name}.`));
  }
  return set;
}

function fieldOf(message: DescMessage, name: string): DescField {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`${message.typeName} has no field ${name}`);
  return field;
}
