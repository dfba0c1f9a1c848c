import jsonPatch, { type Operation } from "fast-json-patch";
import mergePatch from "json-merge-patch";
import { isObject } from "../../json.ts";
import type { KubeObject, PatchType } from "../../resource-api.ts";
import { badRequest, patchDoesNotApply, tooLarge } from "../refusals.ts";

/** The patch types served; strategic merge and server-side apply are refused, as for a custom resource. */
export const patchTypes: readonly PatchType[] = ["application/json-patch+json", "application/merge-patch+json"];

/** As in the real server. */
const maxJsonPatchOperations = 10_000;
const maxCopiedCharacters = 3 * 1024 * 1024;

/** Applies a patch to a copy of an object. The result is unchecked JSON. Throws 400 or 422 as the real server does. */
export function applyPatchTo(object: KubeObject, type: PatchType, body: unknown): unknown {
  return type === "application/json-patch+json" ? applyJsonPatch(object, body) : applyMergePatch(object, body);
}

function applyJsonPatch(object: KubeObject, body: unknown): unknown {
  if (!Array.isArray(body)) {
    throw badRequest("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  }
  if (body.length > maxJsonPatchOperations) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${maxJsonPatchOperations}, got ${body.length}`);
  }
  const operations: Operation[] = body;
  if (body.some((operation) => isObject(operation) && operation.op === "copy")) {
    return applyWithCopies(object, operations);
  }
  try {
    return jsonPatch.applyPatch(object, operations, true, false).newDocument;
  } catch {
    // A failed test, a missing path and an operation that cannot be read all answer alike: the real server says no more.
    throw patchDoesNotApply();
  }
}

/** One at a time, with what is copied counted: thirty copies of a thing into itself make a thousand million of it. */
function applyWithCopies(object: KubeObject, operations: readonly Operation[]): unknown {
  let document: unknown = structuredClone(object);
  let copied = 0;
  for (const [index, operation] of operations.entries()) {
    try {
      if (operation.op === "copy") {
        copied += JSON.stringify(jsonPatch.getValueByPointer(document, operation.from))?.length ?? 0;
      }
      if (copied <= maxCopiedCharacters) {
        document = jsonPatch.applyOperation(document, operation, true, true, true, index).newDocument;
      }
    } catch {
      throw patchDoesNotApply();
    }
    if (copied > maxCopiedCharacters) {
      throw tooLarge(`Unable to complete the copy, the accumulated size increase of copy is ${copied}`);
    }
  }
  return document;
}

function applyMergePatch(object: KubeObject, body: unknown): unknown {
  if (!isObject(body)) {
    throw badRequest(
      "error decoding patch: json: cannot unmarshal value into Go value of type map[string]interface {}",
    );
  }
  refuseUnmergeableKeys(body);
  return mergePatch.apply(structuredClone(object), body);
}

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
