import type { StatusCause } from "../../api-status-error.ts";
import type { KubeObject, OwnerReference } from "../../resource-api.ts";
import type { ResourceType } from "../resource-types.ts";

const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const subdomain = `${label}(\\.${label})*`;

const subdomainPattern = new RegExp(`^${subdomain}$`, "u");
const labelPattern = new RegExp(`^${label}$`, "u");
const qualifiedNamePattern = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/u;

const subdomainRule = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomain}')`;
export const labelRule = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${label}')`;
const labelValueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const keyRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const annotationsLimitBytes = 262_144;

/** What is wrong with an object's metadata, in the real server's words. */
export function validateMetadata(type: ResourceType, object: KubeObject): StatusCause[] {
  const { metadata } = object;
  return [
    ...nameCauses(type, metadata.name),
    ...labelCauses(metadata.labels ?? {}),
    ...annotationCauses(metadata.annotations ?? {}),
    ...ownerCauses(metadata.ownerReferences ?? []),
    ...finalizerNameCauses(type, metadata.finalizers ?? []),
  ];
}

function labelCauses(labels: Readonly<Record<string, string>>): StatusCause[] {
  const field = "metadata.labels";
  return Object.entries(labels).flatMap(([key, value]) => {
    const causes = keyRules(key).map((rule) => invalidValue(field, key, rule));
    if (value.length > 63) causes.push(invalidValue(field, value, "must be no more than 63 bytes"));
    if (value !== "" && !qualifiedNamePattern.test(value)) causes.push(invalidValue(field, value, labelValueRule));
    return causes;
  });
}

function annotationCauses(annotations: Readonly<Record<string, string>>): StatusCause[] {
  const field = "metadata.annotations";
  const entries = Object.entries(annotations);
  const causes = entries.flatMap(([key]) => keyRules(key.toLowerCase()).map((rule) => invalidValue(field, key, rule)));
  const bytes = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  if (bytes > annotationsLimitBytes) {
    const message = `Too long: may not be more than ${annotationsLimitBytes} bytes`;
    causes.push({ reason: "FieldValueTooLong", field, message });
  }
  return causes;
}

function ownerCauses(owners: readonly OwnerReference[]): StatusCause[] {
  const field = "metadata.ownerReferences";
  const causes = owners.flatMap((owner) =>
    (["apiVersion", "kind", "name", "uid"] as const)
      .filter((member) => owner[member] === "")
      .map((member) =>
        invalidValue(`${field}.${member === "apiVersion" ? "version" : member}`, "", "must not be empty"),
      ),
  );
  const controllers = owners.filter((owner) => owner.controller === true);
  if (controllers.length > 1) {
    const names = controllers.map((owner) => `${owner.kind}/${owner.name}`).join(" and ");
    const rule = `Only one reference can have Controller set to true. Found "true" in references for ${names}`;
    causes.push(invalidValue(field, owners, rule));
  }
  return causes;
}

const standardFinalizers = new Set(["foregroundDeletion", "orphan", "kubernetes"]);

/** A finalizer has a qualified name, on a built-in kind with a domain unless it is one of the standard ones. */
function finalizerNameCauses(type: ResourceType, finalizers: readonly string[]): StatusCause[] {
  return finalizers.flatMap((name, index) => {
    const causes = keyRules(name).map((rule) => invalidValue("metadata.finalizers", name, rule));
    if (causes.length > 0 || type.custom || name.includes("/") || standardFinalizers.has(name)) return causes;
    const rule = "name is neither a standard finalizer name nor is it fully qualified";
    return [invalidValue(`metadata.finalizers[${index}]`, name, rule)];
  });
}

/** A cause for a value that breaks a rule. */
export function invalidValue(field: string, value: unknown, rule: string): StatusCause {
  return { reason: "FieldValueInvalid", field, message: `Invalid value: ${JSON.stringify(value)}: ${rule}` };
}

/** A cause for a value that is there already. */
export function duplicate(field: string, value: unknown): StatusCause {
  return { reason: "FieldValueDuplicate", field, message: `Duplicate value: ${JSON.stringify(value)}` };
}

/** A cause for a member that must be there. */
export function required(field: string, rule = ""): StatusCause {
  return { reason: "FieldValueRequired", field, message: rule === "" ? "Required value" : `Required value: ${rule}` };
}

function nameCauses(type: ResourceType, name: string): StatusCause[] {
  if (name === "") return [required("metadata.name", "name or generateName is required")];
  if (type.plural === "services" || type.plural === "namespaces") {
    if (name.includes(".")) return [invalidValue("metadata.name", name, "must not contain dots")];
    return nameCause(name, 63, labelPattern, labelRule);
  }
  return nameCause(name, 253, subdomainPattern, subdomainRule);
}

function nameCause(name: string, limit: number, pattern: RegExp, rule: string): StatusCause[] {
  if (name.length > limit) return [invalidValue("metadata.name", name, `must be no more than ${limit} characters`)];
  return pattern.test(name) ? [] : [invalidValue("metadata.name", name, rule)];
}

/** The rules of a label's key that this one breaks. */
function keyRules(key: string): string[] {
  const parts = key.split("/");
  if (parts.length > 2) {
    return [`a valid label key ${keyRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const name = parts.at(-1) ?? "";
  const prefix = parts.length === 2 ? parts[0] : undefined;
  const broken: string[] = [];
  if (prefix === "") broken.push("prefix part must be non-empty");
  else if (prefix !== undefined && prefix.length > 253) broken.push("prefix part must be no more than 253 bytes");
  else if (prefix !== undefined && !subdomainPattern.test(prefix)) broken.push(`prefix part ${subdomainRule}`);
  if (name === "") broken.push("name part must be non-empty");
  else if (name.length > 63) broken.push("name part must be no more than 63 bytes");
  if (!qualifiedNamePattern.test(name)) broken.push(`name part ${keyRule}`);
  return broken;
}
