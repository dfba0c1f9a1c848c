import type { StatusCause } from "../../api-status-error.ts";
import type { KubeObject } from "../../resource-api.ts";
import { badRequest } from "../refusals.ts";
import { invalidValue } from "./metadata-rules.ts";

/** What an update must not do to an object's metadata, in the real server's words. */

export const otherName = (sent: string, name: string) =>
  badRequest(`the name of the object (${sent}) does not match the name on the URL (${name})`);

/** A finalizer cannot be added to what is being deleted. */
export function finalizerCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  if (old.metadata.deletionTimestamp === undefined) return [];
  const before = new Set(old.metadata.finalizers ?? []);
  const added = (object.metadata.finalizers ?? []).filter((name) => !before.has(name));
  if (added.length === 0) return [];
  const list = added.map((name) => JSON.stringify(name)).join(", ");
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`;
  return [{ reason: "FieldValueForbidden", field: "metadata.finalizers", message }];
}

/** Only a DELETE marks an object for deletion. A mark that stands is kept, whatever is sent. */
export function deletionStampCauses(sent: KubeObject, old: KubeObject): StatusCause[] {
  const causes: StatusCause[] = [];
  for (const member of ["deletionTimestamp", "deletionGracePeriodSeconds"] as const) {
    const value = sent.metadata[member];
    if (value === undefined || old.metadata[member] !== undefined) continue;
    causes.push(invalidValue(`metadata.${member}`, value, "field is immutable"));
  }
  return causes;
}
