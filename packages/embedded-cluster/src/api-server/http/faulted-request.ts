import type { FaultedRequest, FaultVerb } from "../../faults/fault-rule.ts";
import { stringIn, valueAt } from "../../json.ts";
import type { ApiRequest } from "./api-request.ts";
import { isWatch } from "./query.ts";
import type { Route } from "./route.ts";

/** The request as fault rules see it; undefined where they are not about it: documents and reviews. */
export function faultedRequestOf(route: Route, request: ApiRequest, by: string): FaultedRequest | undefined {
  if (
    route.t !== "collection" &&
    route.t !== "object" &&
    route.t !== "binding" &&
    route.t !== "eviction" &&
    route.t !== "log"
  ) {
    return undefined;
  }
  const isCollection = route.t === "collection";
  const verb = verbOf(request, isCollection);
  if (verb === undefined) return undefined;
  const name = isCollection ? (verb === "create" ? nameIn(request) : "") : route.name;
  const subresource = isCollection ? "" : route.t === "object" ? (route.subresource ?? "") : route.t;
  return { by, verb, resource: route.type.plural, namespace: route.namespace ?? "", name, subresource };
}

function verbOf(request: ApiRequest, isCollection: boolean): FaultVerb | undefined {
  switch (request.method) {
    case "GET":
      return !isCollection ? "get" : isWatch(request.query) ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return isCollection ? "deletecollection" : "delete";
    default:
      return undefined;
  }
}

/** The name in the body of a create, as far as it can be read before it is checked. */
function nameIn(request: ApiRequest): string {
  try {
    return stringIn(valueAt(JSON.parse(request.body), "metadata"), "name") ?? "";
  } catch {
    return ""; // not JSON: the handler will say so, or read it as YAML
  }
}
