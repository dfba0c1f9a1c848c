import type { StatusCause } from "../../api-status-error.ts";
import type { KubeObject } from "../../resource-api.ts";
import type { ResourceType } from "../resource-types.ts";

const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const subdomain = `${label}(\\.${label})*`;

const subdomainPattern = new RegExp(`^${subdomain}$`, "u");
const labelPattern = new RegExp(`^${label}$`, "u");
const serviceNamePattern = /^[a-z]([-a-z0-9]*[a-z0-9])?$/u;
const qualifiedNamePattern = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/u;

const subdomainRule = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomain}')`;
export const labelRule = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${label}')`;
const serviceRule =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const labelValueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const annotationsLimitBytes = 262_144;

/** What is wrong with an object's metadata, in the real server's words. */
export function validateMetadata(type: ResourceType, object: KubeObject): StatusCause[] {
  const { metadata } = object;
  const causes = nameCauses(type, metadata.name);
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (!isQualifiedName(key)) {
      causes.push(
        invalidValue(
          "metadata.labels",
          key,
          "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        ),
      );
    }
    if (value.length > 63) causes.push(invalidValue("metadata.labels", value, "must be no more than 63 characters"));
    else if (value !== "" && !qualifiedNamePattern.test(value))
      causes.push(invalidValue("metadata.labels", value, labelValueRule));
  }
  let annotationBytes = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    annotationBytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    if (!isQualifiedName(key.toLowerCase())) {
      causes.push(
        invalidValue(
          "metadata.annotations",
          key,
          "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        ),
      );
    }
  }
  if (annotationBytes > annotationsLimitBytes) {
    causes.push({
      reason: "FieldValueTooLong",
      field: "metadata.annotations",
      message: `Too long: may not be more than ${annotationsLimitBytes} bytes`,
    });
  }
  const controllers = (metadata.ownerReferences ?? []).filter((owner) => owner.controller === true);
  if (controllers.length > 1) {
    causes.push({
      reason: "FieldValueInvalid",
      field: "metadata.ownerReferences",
      message: `Invalid value: only one reference can have Controller set to true. Found "true" in references for ${controllers.map((owner) => `${owner.kind}/${owner.name}`).join(" and ")}`,
    });
  }
  return causes;
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
  if (type.plural === "services") return nameCause(name, 63, serviceNamePattern, serviceRule);
  if (type.plural === "namespaces") return nameCause(name, 63, labelPattern, labelRule);
  return nameCause(name, 253, subdomainPattern, subdomainRule);
}

function nameCause(name: string, limit: number, pattern: RegExp, rule: string): StatusCause[] {
  if (name.length > limit) return [invalidValue("metadata.name", name, `must be no more than ${limit} characters`)];
  return pattern.test(name) ? [] : [invalidValue("metadata.name", name, rule)];
}

function isQualifiedName(key: string): boolean {
  const slash = key.indexOf("/");
  const name = slash < 0 ? key : key.slice(slash + 1);
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  if (prefix !== undefined && (prefix.length > 253 || !subdomainPattern.test(prefix))) return false;
  return name.length <= 63 && qualifiedNamePattern.test(name);
}
