import { isObject, objectIn, valueAt } from "../../json.ts";
import { badRequest } from "../refusals.ts";
import { apiVersionOf, type ResourceType } from "../resource-types.ts";

/** Tells whether an object (as parsed JSON) is selected. */
export type Matches = (object: unknown) => boolean;

export interface Selection {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Compiles both selectors; undefined when nothing is filtered. Throws 400 on one that cannot be read or is not served. */
export function compileSelection(type: ResourceType, selection: Selection): Matches | undefined {
  const tests = [
    ...labelTests(selection.labelSelector ?? ""),
    ...fieldTests(type, selection.fieldSelector ?? "", selection.labelSelector ?? ""),
  ];
  return tests.length === 0 ? undefined : (object) => tests.every((test) => test(object));
}

function labelTests(selector: string): Matches[] {
  return splitRequirements(selector).map((requirement) => labelTest(requirement, selector));
}

/** Splits at commas outside parentheses. */
function splitRequirements(selector: string): string[] {
  if (selector.trim() === "") return [];
  return selector.split(/,(?![^(]*\))/u).map((part) => part.trim());
}

const key = "[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?";
const value = "(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?";
const setRequirement = new RegExp(`^(${key})\\s+(in|notin)\\s*\\(\\s*([^()]*)\\s*\\)$`, "u");
const equalityRequirement = new RegExp(`^(${key})\\s*(==|=|!=)\\s*(${value})$`, "u");
const existsRequirement = new RegExp(`^(!?)\\s*(${key})$`, "u");

function labelTest(requirement: string, selector: string): Matches {
  const set = setRequirement.exec(requirement);
  if (set !== null) {
    const [, label = "", operator, list = ""] = set;
    const values = new Set(list.split(",").map((item) => item.trim()));
    return operator === "in"
      ? (object) => values.has(labelOf(object, label) ?? "\0")
      : (object) => !values.has(labelOf(object, label) ?? "\0");
  }
  const equality = equalityRequirement.exec(requirement);
  if (equality !== null) {
    const [, label = "", operator, wanted] = equality;
    return operator === "!="
      ? (object) => labelOf(object, label) !== wanted
      : (object) => labelOf(object, label) === wanted;
  }
  const exists = existsRequirement.exec(requirement);
  if (exists !== null) {
    const [, not, label = ""] = exists;
    return not === "!"
      ? (object) => labelOf(object, label) === undefined
      : (object) => labelOf(object, label) !== undefined;
  }
  throw badRequest(
    `unable to parse requirement: ${JSON.stringify(requirement)} in label selector ${JSON.stringify(selector)}`,
  );
}

function labelOf(object: unknown, label: string): string | undefined {
  const labels = objectIn(objectIn(object, "metadata"), "labels");
  const found = labels !== undefined && Object.hasOwn(labels, label) ? labels[label] : undefined;
  return typeof found === "string" ? found : undefined;
}

function fieldTests(type: ResourceType, selector: string, labelSelector: string): Matches[] {
  if (selector.trim() === "") return [];
  return selector.split(",").map((term) => {
    const match = /^\s*([^=!\s]+)\s*(==|=|!=)\s*(.*?)\s*$/u.exec(term);
    if (match === null) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
    const [, field = "", operator, wanted = ""] = match;
    if (!isSelectable(type, field)) {
      throw badRequest(
        `Unable to find "${apiVersionOf(type)}, Resource=${type.plural}" that match label selector "${labelSelector}", field selector "${selector}": field label not supported: ${field}`,
      );
    }
    return operator === "!="
      ? (object) => fieldOf(object, field) !== wanted
      : (object) => fieldOf(object, field) === wanted;
  });
}

function isSelectable(type: ResourceType, field: string): boolean {
  if (field === "metadata.name") return true;
  if (field === "metadata.namespace") return type.namespaced;
  return type.selectableFields.includes(field);
}

/** An absent field selects as the empty string, as in the real server. */
function fieldOf(object: unknown, field: string): string {
  if (field === "source") return String(valueAt(object, "source.component") ?? "");
  const found = valueAt(object, field);
  return found === undefined || found === null || isObject(found) ? "" : String(found);
}
