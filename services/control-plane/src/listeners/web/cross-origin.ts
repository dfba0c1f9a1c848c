import { cors } from "@connectrpc/connect";
import { holderEpochHeader } from "@holdfast/contract";
import { hostName } from "./allowed-hosts.ts";
import type { WebRequest, WebResponse } from "./exchange.ts";

/** How long a browser may remember the answer to a preflight. */
const preflightKeptSeconds = 7_200;

export type OriginVerdict =
  /** Not from a page of another origin. */
  | { readonly t: "go" }
  /** A preflight: the headers are its whole answer. */
  | { readonly t: "preflight" }
  | { readonly t: "refused"; readonly text: string };

/**
 * Which pages of other origins may call (CORS). A request with an Origin that is neither ours nor allowed is refused before anything
 * looks at it: browsers send some requests without asking first. Credentials are never allowed, and no origin is allowed by a pattern.
 */
export class CrossOrigin {
  readonly #allowed: ReadonlySet<string>;

  /** @param allowed exact origins, as browsers write them */
  constructor(allowed: readonly string[]) {
    this.#allowed = new Set(allowed);
  }

  /** Judges a request, and sets the headers that its answer needs. */
  judge(request: WebRequest, response: WebResponse): OriginVerdict {
    response.setHeader("vary", "Origin");
    const { origin } = request.headers;
    if (origin === undefined || isOwn(origin, request)) return { t: "go" };
    if (!this.#allowed.has(origin)) {
      const text =
        `Nothing was done: pages of ${JSON.stringify(origin.slice(0, 256))} may not call this service. ` +
        "Start it with --web-allow-origin ORIGIN to let them.\n";
      return { t: "refused", text };
    }
    response.setHeader("access-control-allow-origin", origin);
    if (request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined) {
      response.setHeader("access-control-allow-methods", cors.allowedMethods.join(", "));
      response.setHeader("access-control-allow-headers", [...cors.allowedHeaders, holderEpochHeader].join(", "));
      response.setHeader("access-control-max-age", String(preflightKeptSeconds));
      return { t: "preflight" };
    }
    response.setHeader("access-control-expose-headers", cors.exposedHeaders.join(", "));
    return { t: "go" };
  }
}

/** A page that this listener itself served, perhaps through something that adds TLS: same host and port as the request is addressed to. */
function isOwn(origin: string, request: WebRequest): boolean {
  const authority = String(request.headers[":authority"] ?? request.headers.host ?? "").toLowerCase();
  return hostName(authority) !== undefined && /^https?:\/\/(.*)$/.exec(origin)?.[1] === authority;
}
