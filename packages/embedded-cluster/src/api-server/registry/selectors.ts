import { isObject, valueAt } from "../../json.ts";
import { badRequest } from "../refusals.ts";
import type { ResourceType } from "../resource-types.ts";
import { labelTests } from "./label-selector.ts";

/** Tells whether an object (as parsed JSON) is selected. */
export type Matches = (object: unknown) => boolean;

export interface Selection {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Compiles both selectors; undefined when nothing is filtered. Throws 400 on one that cannot be read or is not served. */
export function compileSelection(type: ResourceType, selection: Selection): Matches | undefined {
  const tests = [...labelTests(selection.labelSelector ?? ""), ...fieldTests(type, selection.fieldSelector ?? "")];
  return tests.length === 0 ? undefined : (object) => tests.every((test) => test(object));
}

function fieldTests(type: ResourceType, selector: string): Matches[] {
  if (selector.trim() === "") return [];
  return selector.split(",").map((term) => {
    const match = /^\s*([^=!\s]+)\s*(==|=|!=)\s*(.*?)\s*$/u.exec(term);
    if (match === null) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
    const [, field = "", operator, wanted = ""] = match;
    if (!isSelectable(type, field)) {
      throw badRequest(notSelectable(type, field));
    }
    return operator === "!="
      ? (object) => fieldOf(object, field) !== wanted
      : (object) => fieldOf(object, field) === wanted;
  });
}

/** Kinds without selectable fields of their own name what they have. */
function notSelectable(type: ResourceType, field: string): string {
  return type.custom || type.selectableFields.length > 0
    ? `field label not supported: ${field}`
    : `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`;
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
