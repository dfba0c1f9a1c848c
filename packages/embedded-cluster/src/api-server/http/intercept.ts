/** What a test sees of a request before it is handled. */
export interface InterceptedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

/**
 * What becomes of an intercepted request. `applyThenDropReply` handles it and then cuts the connection; `dropUnapplied`
 * cuts it at once: the caller cannot tell the two apart.
 */
export type Verdict =
  | { readonly t: "continue" }
  | { readonly t: "fail"; readonly code: number; readonly reason: string; readonly message: string }
  | { readonly t: "delay"; readonly ms: number }
  | { readonly t: "applyThenDropReply" }
  | { readonly t: "dropUnapplied" };

/**
 * A test knob: decides each request's fate at the HTTP edge, after authentication. It may also hold a request by
 * returning a promise. In-process callers are not intercepted. Never set by the product.
 */
export type Intercept = (request: InterceptedRequest) => Verdict | Promise<Verdict>;
