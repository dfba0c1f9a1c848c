import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { universalResponseToNodeResponse } from "@connectrpc/connect-node";

/** A request of either version of HTTP. */
export type WebRequest = IncomingMessage | Http2ServerRequest;

/** A response of either version of HTTP, as connect-node takes it. */
export type WebResponse = Parameters<typeof universalResponseToNodeResponse>[1];

/** Serves one request. Does not throw. */
export type Exchange = (request: WebRequest, response: WebResponse) => void;
