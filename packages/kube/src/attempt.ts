import type { Resource } from "./resources.ts";
import { qualified } from "./resources.ts";
import type { ApiRequest } from "./transport/transport.ts";

/** One thing that is asked of the API server, with the words for its errors. */
export interface Attempt {
  readonly verb: "get" | "list" | "watch" | "create" | "patch" | "delete";
  readonly resource: Resource;
  readonly namespace: string;
  /** Undefined for a collection. */
  readonly name: string | undefined;
  readonly request: ApiRequest;
}

/** As "get sandboxes.agents.x-k8s.io namzu-ws-a". */
export function describe(attempt: Attempt): string {
  const named = attempt.name === undefined ? "" : ` ${attempt.name}`;
  return `${attempt.verb} ${qualified(attempt.resource)}${named}`;
}

/** The facts of an attempt for an error's metadata. */
export function factsOf(attempt: Attempt): Readonly<Record<string, string>> {
  return {
    verb: attempt.verb,
    resource: qualified(attempt.resource),
    namespace: attempt.namespace,
    ...(attempt.name === undefined ? {} : { name: attempt.name }),
  };
}
