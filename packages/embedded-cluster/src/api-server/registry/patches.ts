import mergePatch from "json-merge-patch";
import { isObject } from "../../json.ts";
import type { KubeObject, PatchType } from "../../resource-api.ts";
import { badRequest, patchDoesNotApply, tooLarge } from "../refusals.ts";
import { goKindOf, goSyntaxError } from "./go-json.ts";
import { applyJsonPatch, CopiesTooLarge, PatchFailed } from "./json-patch.ts";

/** The patch types served; strategic merge and server-side apply are refused. */
export const patchTypes: readonly PatchType[] = ["application/json-patch+json", "application/merge-patch+json"];

/** As in the real server. */
const maxJsonPatchOperations = 10_000;

/** Reads a patch that was sent. Throws 400 as the real server does. */
export function parsePatch(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(`error decoding patch: ${goSyntaxError(text)}`);
  }
}

/** Applies a patch to a copy of an object. The result is unchecked JSON. Throws 400, 413 or 422 as the real server does. */
export function applyPatchTo(object: KubeObject, type: PatchType, body: unknown): unknown {
  return type === "application/json-patch+json" ? patchedByOperations(object, body) : merged(object, body);
}

function patchedByOperations(object: KubeObject, body: unknown): unknown {
  if (!Array.isArray(body)) throw cannotUnmarshal(body, "[]handlers.jsonPatchOp");
  if (body.length > maxJsonPatchOperations) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${maxJsonPatchOperations}, got ${body.length}`);
  }
  try {
    return applyJsonPatch(structuredClone(object), body);
  } catch (error) {
    if (error instanceof PatchFailed) throw patchDoesNotApply();
    if (error instanceof CopiesTooLarge) {
      throw tooLarge(`Unable to complete the copy, the accumulated size increase of copy is ${error.message}`);
    }
    throw error;
  }
}

function merged(object: KubeObject, body: unknown): unknown {
  if (body === null) throw badRequest("Invalid JSON Patch");
  if (!isObject(body)) throw cannotUnmarshal(body, "map[string]interface {}");
  refuseUnmergeableKeys(body);
  return mergePatch.apply(structuredClone(object), body);
}

const cannotUnmarshal = (body: unknown, goType: string) =>
  badRequest(`error decoding patch: json: cannot unmarshal ${goKindOf(body)} into Go value of type ${goType}`);

/** The library stops at these keys and leaves the rest of the patch undone, in silence. */
const unmergeable = new Set(["__proto__", "constructor", "prototype", "hasOwnProperty"]);

function refuseUnmergeableKeys(value: unknown): void {
  if (!isObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    if (unmergeable.has(key))
      throw badRequest(`the embedded cluster does not merge a member named ${JSON.stringify(key)}`);
    refuseUnmergeableKeys(member);
  }
}
