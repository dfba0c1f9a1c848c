import { type DescField, type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { ExecuteRequestSchema, RunCommandRequestSchema } from "@holdfast/api/holdfast/v1/execution_pb";
import { HoldfastError } from "@holdfast/errors";

/**
 * Declared fields that this release refuses when they are set, and never ignores.
 * The same list as the protos' "Not served yet" (fields-not-served.test.ts).
 */
export const fieldsNotServed = new Map<DescMessage, readonly string[]>([
  [ExecuteRequestSchema, ["expected_boot_id"]],
  [RunCommandRequestSchema, ["expected_boot_id"]],
]);

const descriptors = new Map<DescMessage, readonly DescField[]>(
  [...fieldsNotServed].map(([message, names]) => [message, names.map((name) => fieldOf(message, name))]),
);

/** Throws FIELD_NOT_SERVED naming every set field that this release does not serve. */
export function assertFieldsServed(schema: DescMessage, request: Message): void {
  const set = setButNotServed(schema, request, "");
  if (set.length === 0) return;
  const violations = set.map((field) => ({ field, description: "is declared, but not served by this release" }));
  throw new HoldfastError("FIELD_NOT_SERVED", {
    message: `The call was not carried out: this release does not serve ${set.join(", ")}. Leave it out.`,
    metadata: { fields: set.join(",") },
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
