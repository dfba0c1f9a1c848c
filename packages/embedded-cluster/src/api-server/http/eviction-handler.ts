import { isObject, listIn, objectIn, stringIn } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import { badRequest, Undecodable } from "../refusals.ts";
import { goKindOf } from "../registry/go-json.ts";
import type { Registry } from "../registry/registry.ts";
import { rfc3339 } from "../registry/timestamp.ts";
import type { ApiRequest } from "./api-request.ts";
import { deleteWishOf, isDryRun } from "./query.ts";
import { jsonReply, type Reply } from "./reply.ts";
import { parseObject } from "./request-body.ts";
import { type Route, refuseMethod } from "./route.ts";

/**
 * Evicts a pod by the API, as a drain of a node does: it is marked as disrupted and deleted, with the grace of the Eviction's options. No
 * disruption budgets are served, so none refuses it.
 */
export function handleEviction(
  registry: Registry,
  route: Extract<Route, { t: "eviction" }>,
  request: ApiRequest,
  now: Date,
): Reply {
  if (request.method !== "POST") return refuseMethod();
  const body = parseObject(request, "Eviction");
  if (stringIn(objectIn(body, "metadata"), "name") !== route.name) {
    throw badRequest("name in URL does not match name in Eviction object");
  }
  const options = optionsIn(body);
  const wish = deleteWishOf(new URLSearchParams(), options);
  registry.inRun(true, () => registry.delete(route, wish)); // Refused as a whole, before the mark.
  const { resourceVersion: _, ...preconditions } = wish.preconditions ?? {}; // The mark is a new version.
  registry.inRun(isDryRun(request, options), () => {
    const pod = registry.get(route);
    // One that has ended, does not run yet, or goes already is deleted as it is.
    const isPlain = ["Succeeded", "Failed", "Pending"].includes(stringIn(pod.status, "phase") ?? "");
    if (!isPlain && pod.metadata.deletionTimestamp === undefined) {
      registry.patch(route, "application/merge-patch+json", disrupted(pod, now), "status");
    }
    registry.delete(route, { ...wish, preconditions });
  });
  return jsonReply(201, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 });
}

/** Whatever cannot be read as an eviction and its options is refused, or a dry run might be none. */
function optionsIn(body: unknown): unknown {
  const { kind = "", apiVersion = "", deleteOptions } = isObject(body) ? body : {};
  const wanted = { kind: "Eviction", version: "v1" };
  if ((kind !== "" && kind !== "Eviction") || (apiVersion !== "" && apiVersion !== "policy/v1")) {
    const version = String(apiVersion);
    const why = `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`;
    throw new Undecodable(wanted, why, { kind: String(kind), version: version.slice(version.lastIndexOf("/") + 1) });
  }
  if (deleteOptions === undefined || deleteOptions === null) return undefined;
  if (isObject(deleteOptions)) return deleteOptions;
  const why = `json: cannot unmarshal ${goKindOf(deleteOptions)} into Go struct field Eviction.deleteOptions of type v1.DeleteOptions`;
  throw new Undecodable(wanted, why);
}

/** The condition that tells why the pod goes. */
function disrupted(pod: KubeObject, now: Date): unknown {
  const others = listIn(pod.status, "conditions").filter((entry) => stringIn(entry, "type") !== "DisruptionTarget");
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
    lastProbeTime: null,
    lastTransitionTime: rfc3339(now),
  };
  return { status: { conditions: [...others.filter(isObject), condition] } };
}
