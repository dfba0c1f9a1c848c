import { constants } from "node:http2";
import type { DescService } from "@bufbuild/protobuf";
import { createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { requestMaxBytes } from "@holdfast/contract";
import type { Logger } from "pino";
import { addressText, type ListenAddress, type WebConfig } from "../../config/service-config.ts";
import type { ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { StartFailure } from "../../start-failure.ts";
import { whyNot } from "../free-port.ts";
import type { Listener } from "../listener.ts";
import { shortenTimeout } from "../long-timeout.ts";
import { AllowedHosts, hostName } from "./allowed-hosts.ts";
import { afterReset, arrivalOf, tellsItsEnd } from "./arrival.ts";
import { mountMethod } from "./connect-methods.ts";
import { CrossOrigin } from "./cross-origin.ts";
import type { WebRequest, WebResponse } from "./exchange.ts";
import { PlainPort } from "./plain-port.ts";
import { asUnreadable, refusalOf, versionRefusalOf } from "./unreadable-request.ts";
import { type RequestFacts, requestFacts } from "./web-call.ts";

export interface WebListenerInit {
  readonly web: WebConfig;
  readonly services: ReadonlyMap<DescService, readonly ServedMethod[]>;
  readonly logger: Logger;
}

/** The web listener: the same services as Connect, gRPC-Web and gRPC, over HTTP/1.1 and HTTP/2, for browsers, curl and web backends. */
export class WebListener implements Listener {
  readonly address: ListenAddress;
  readonly #port: PlainPort;
  readonly #hosts: AllowedHosts;
  readonly #origins: CrossOrigin;
  readonly #handlers: ReadonlyMap<string, UniversalHandler>;
  readonly #greeting: string;
  readonly #logger: Logger;
  readonly #forced = new AbortController();
  #draining = false;

  private constructor({ web, services, logger }: WebListenerInit, port: PlainPort, address: ListenAddress) {
    this.address = address;
    this.#port = port;
    this.#hosts = new AllowedHosts([hostName(addressText(web.listen)) ?? "", ...web.allowHosts]);
    this.#origins = new CrossOrigin(web.allowOrigins);
    this.#handlers = handlersOf(services);
    this.#greeting = greeting(address, [...services.keys()]);
    this.#logger = logger;
  }

  /** Listens, or throws a StartFailure that says why it cannot. */
  static async open(init: WebListenerInit): Promise<WebListener> {
    const { listen } = init.web;
    const { logger } = init;
    const port = new PlainPort(
      (request, response) => listener.#exchange(request, response),
      (error) => logger.debug({ err: error, from: "http2" }, "a connection ended"),
    );
    const bound = await port.listen(listen).catch((error: unknown) => {
      throw new StartFailure(`cannot listen on ${addressText(listen)} (--web-listen): ${whyNot(error)}`, error);
    });
    const listener = new WebListener(init, port, { host: listen.host, port: bound });
    return listener;
  }

  /** Answers health checks with 503 from now on. */
  announceDrain(): void {
    this.#draining = true;
  }

  /** Closes: takes no new connection, waits for calls until the signal aborts, then ends what is left, which no call takes for its client's end. */
  async close(signal: AbortSignal): Promise<void> {
    const force = (): void => {
      this.#forced.abort();
      this.#port.destroy();
    };
    const ended = this.#port.end();
    signal.addEventListener("abort", force, { once: true });
    if (signal.aborted) force();
    await ended;
    signal.removeEventListener("abort", force);
  }

  #exchange(request: WebRequest, response: WebResponse): void {
    const path = request.url?.split("?", 1)[0] ?? "";
    const isRead = request.method === "GET" || request.method === "HEAD";
    // By any name: those who ask for a pod's health call it by its address. There is nothing to read or to do.
    if (path === "/healthz" && isRead) {
      say(response, this.#draining ? 503 : 200, this.#draining ? "draining\n" : "serving\n");
      return;
    }
    const foreign = this.#hosts.refusalOf(request);
    if (foreign !== undefined) {
      say(response, 403, foreign);
      return;
    }
    const verdict = this.#origins.judge(request, response);
    const handler = this.#handlers.get(path);
    if (verdict.t === "refused") say(response, 403, verdict.text);
    else if (verdict.t === "preflight") {
      response.writeHead(204);
      response.end();
    } else if (handler !== undefined) void this.#call(handler, request, response);
    else if (path === "/" && isRead) say(response, 200, this.#greeting);
    else say(response, 404, `Nothing is served at ${JSON.stringify(path.slice(0, 256))}.\n`);
  }

  /** Never rejects: what fails here ends its own exchange only. */
  async #call(handler: UniversalHandler, request: WebRequest, response: WebResponse): Promise<void> {
    try {
      const { remoteAddress, remotePort } = request.socket;
      const facts: RequestFacts = {
        peer: `${remoteAddress}:${remotePort}`,
        forced: this.#forced.signal,
        unreadable: undefined,
        arrival: () => arrivalOf(request),
        tellsItsEnd: tellsItsEnd(request),
        afterReset: () => afterReset(request),
      };
      shortenTimeout(request.headers);
      const values = createContextValues().set(requestFacts, facts);
      const universal = universalRequestFromNodeRequest(request, response, undefined, values);
      await universalResponseToNodeResponse(await answerOf(handler, universal, facts), response);
    } catch (error) {
      // Nearly always a client that went away while it was written to.
      this.#logger.debug({ err: error, rpc: handler.method.name }, "an exchange ended early");
      if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      else response.destroy();
    }
  }
}

/** The answer of connect-node; with our reason where it has none for what it refuses. */
async function answerOf(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  facts: RequestFacts,
): Promise<UniversalServerResponse> {
  const notCarried = versionRefusalOf(request, handler.method);
  if (notCarried !== undefined) {
    const answer = await handler(asUnreadable(request, facts, notCarried));
    // What the client still sends is not read: its connection ends with the answer.
    const header = new Headers(answer.header);
    header.set("connection", "close");
    return { ...answer, header };
  }
  const answer = await handler(request);
  const refusal = refusalOf(facts);
  return refusal === undefined ? answer : await handler(asUnreadable(request, facts, refusal));
}

function handlersOf(services: WebListenerInit["services"]): Map<string, UniversalHandler> {
  const router = createConnectRouter({
    // Compression costs 3 to 18 times what it carries: neither offered nor accepted.
    acceptCompression: [],
    readMaxBytes: requestMaxBytes,
    // A name that is mistyped must not be taken for a wish that was not there.
    jsonOptions: { ignoreUnknownFields: false },
    requestGate: ({ values, signal }) => {
      const facts = values.get(requestFacts);
      if (facts) facts.seen = signal;
    },
  });
  for (const method of [...services.values()].flat()) mountMethod(router, method);
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
}

function greeting(address: ListenAddress, services: readonly DescService[]): string {
  return [
    "Holdfast: a control plane for long-lived workspaces on Kubernetes.",
    "This port speaks Connect, gRPC-Web and gRPC. It serves",
    ...services.map(({ typeName }) => `  ${typeName}`),
    "For example:",
    `  ${curlLine(address, "")}`,
    "",
  ].join("\n");
}

/** A call to copy. `more`: further fields, as JSON with a leading comma. */
export function curlLine(address: ListenAddress, more: string): string {
  return `curl -H 'content-type: application/json' -d '{"workspace_id":"hello"${more}}' http://${addressText(address)}/holdfast.v1.WorkspaceService/OpenWorkspace`;
}

function say(response: WebResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" });
  response.end(text);
}
