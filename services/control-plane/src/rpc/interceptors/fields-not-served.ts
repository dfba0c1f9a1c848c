import { type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { HoldfastError } from "@holdfast/errors";

/**
 * Declared fields that this release refuses when they are set, and never ignores.
 * The same list as the protos' "Not served yet" (fields-not-served.test.ts).
 */
export const fieldsNotServed: ReadonlyMap<DescMessage, readonly string[]> = new Map();

/** Throws FIELD_NOT_SERVED naming every set field that this release does not serve. */
export function assertFieldsServed(schema: DescMessage, request: Message, notServed = fieldsNotServed): void {
  if (notServed.size === 0) return;
  const set = setButNotServed(schema, request, notServed, "");
  if (set.length === 0) return;
  const violations = set.map((field) => ({ field, description: "is declared, but not served by this release" }));
  throw new HoldfastError("FIELD_NOT_SERVED", {
    message: `The call was not carried out: this release does not serve ${set.join(", ")}. Leave it out.`,
    metadata: { fields: set.join(",") },
    violations,
  });
}

/** By path, also in the messages within. */
function setButNotServed(
  schema: DescMessage,
  message: Message,
  notServed: typeof fieldsNotServed,
  path: string,
): string[] {
  const set: string[] = [];
  for (const field of schema.fields) {
    if (!isFieldSet(message, field)) continue;
    const name = path + field.name;
    if (notServed.get(schema)?.includes(field.name)) set.push(name);
    if (field.fieldKind !== "message") continue;
    set.push(...setButNotServed(field.message, reflect(schema, message).get(field).message, notServed, `${name}.`));
  }
  return set;
}
