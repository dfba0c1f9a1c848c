import { HoldfastError } from "@holdfast/errors";
import { type Attempt, describe, factsOf } from "./attempt.ts";
import { qualified } from "./resources.ts";
import { type ApiAnswer, wordsOf } from "./transport/api-answer.ts";

/** 401 and 403: names the verb and the resource that the service's Role lacks, or says that its credentials are not accepted. */
export function forbidden(attempt: Attempt, answer: ApiAnswer): HoldfastError {
  const { verb, resource, namespace } = attempt;
  const what =
    answer.status === 401
      ? `The API server does not accept the service's credentials`
      : `The service may not ${verb} ${qualified(resource)} in namespace ${namespace}`;
  return new HoldfastError("CLUSTER_FORBIDDEN", {
    message: `${what}: ${wordsOf(answer)}. Nothing was changed.`,
    metadata: { ...factsOf(attempt), status: String(answer.status) },
  });
}

/** A write that the server refused for a reason of its own. */
export function writeRefused(attempt: Attempt, answer: ApiAnswer): HoldfastError {
  return new HoldfastError("CLUSTER_WRITE_REFUSED", {
    message: `The API server refused to ${describe(attempt)} (${answer.status}): ${wordsOf(answer)}. Nothing was changed.`,
    metadata: { ...factsOf(attempt), status: String(answer.status) },
  });
}

/** The object of a write is not there. */
export function absent(attempt: Attempt): HoldfastError {
  return new HoldfastError("WORKSPACE_NOT_FOUND", {
    message: `There is no ${qualified(attempt.resource)} ${attempt.name ?? ""} in namespace ${attempt.namespace}. Nothing was changed.`,
    metadata: factsOf(attempt),
  });
}

/** Nothing was done and nothing is known; a later try may help. */
export function unavailable(attempt: Attempt, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError("CLUSTER_UNAVAILABLE", {
    message: `Could not ${describe(attempt)}: ${why}. Nothing was changed.`,
    metadata: factsOf(attempt),
    ...(cause === undefined ? {} : { cause }),
  });
}
