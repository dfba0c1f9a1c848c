/** Requests as the fault knobs see them, and what can be made of them. */

export type FaultVerb = "create" | "delete" | "deletecollection" | "get" | "list" | "patch" | "update" | "watch";

/** One request, before it is carried out. */
export interface FaultedRequest {
  /** "client" for whoever comes over the network, "controller", "node", or the name that an in-process caller goes by. */
  readonly by: string;
  readonly verb: FaultVerb;
  readonly resource: string;
  /** "" where it is of no namespace. */
  readonly namespace: string;
  /** "" for a collection; for a create the object's name as sent. */
  readonly name: string;
  /** "" for the object itself. */
  readonly subresource: string;
}

/** Which requests are meant; an absent member means any. A list means any of them. */
export interface FaultMatch {
  readonly by?: string;
  readonly verb?: FaultVerb | readonly FaultVerb[];
  /** The plural, as `sandboxes`. */
  readonly resource?: string | readonly string[];
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
}

/**
 * How a caller is left without an answer: its connection is cut, nothing comes until it gives up, or the server says
 * 504 Timeout. None of them tells whether the write was carried out.
 */
export type Loss = "cut" | "silence" | "timeout";

/** What becomes of a matching request. */
export type FaultAction =
  /** Refused, not carried out. */
  | {
      readonly t: "fail";
      readonly code: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
    }
  /** Carried out after this long. */
  | { readonly t: "delay"; readonly ms: number }
  /** Waits until the rule is removed, then carried out. */
  | { readonly t: "hold" }
  /** Never carried out, and no answer. */
  | { readonly t: "dropUnapplied"; readonly loss?: Loss }
  /** Carried out, and no answer. */
  | { readonly t: "applyThenDrop"; readonly loss?: Loss }
  /** No answer now; carried out after this long. */
  | { readonly t: "applyLate"; readonly ms: number; readonly loss?: Loss };

/** A rule: of the requests that match, the first `after` pass, and the next `count` meet the action (absent: all). */
export interface FaultRule {
  readonly match: FaultMatch;
  readonly action: FaultAction;
  readonly after?: number;
  readonly count?: number;
}

/** Tells whether a request is meant. */
export function isMeant(match: FaultMatch, request: FaultedRequest): boolean {
  return (
    holds(match.by, request.by) &&
    holds(match.verb, request.verb) &&
    holds(match.resource, request.resource) &&
    holds(match.namespace, request.namespace) &&
    holds(match.name, request.name) &&
    holds(match.subresource, request.subresource)
  );
}

function holds(wanted: string | readonly string[] | undefined, found: string): boolean {
  if (wanted === undefined) return true;
  return typeof wanted === "string" ? wanted === found : wanted.includes(found);
}
