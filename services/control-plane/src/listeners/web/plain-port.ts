import { once } from "node:events";
import { createServer as createHttp1, type Server as Http1Server } from "node:http";
import { createServer as createHttp2, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import {
  callsPerConnectionMax,
  clientPingEveryMs,
  receiveConnectionWindowBytes,
  receiveWindowBytes,
} from "@holdfast/contract";
import type { ListenAddress } from "../../config/service-config.ts";
import { cancelLimits } from "../cancel-limits.ts";
import { endAtReset } from "../end-at-reset.ts";
import type { Exchange } from "./exchange.ts";
import { awaitProtocol } from "./first-bytes.ts";
import { keepAlive } from "./keep-alive.ts";

/** What one connection may hold in memory, in MB; a slow reader's streams hold some 64 KiB each. Node's own, 10, refuses calls early. */
const sessionMemoryMb = 512;

/**
 * HTTP/1.1 and HTTP/2 on one port, without TLS: a connection that begins with the preface of HTTP/2 is HTTP/2.
 * (docs/decisions/0007-one-plain-web-port.md)
 */
export class PlainPort {
  /** Listens, and owns every connection that has not begun with the preface. */
  readonly #http1: Http1Server;
  /** Listens nowhere: it is handed connections. */
  readonly #http2: Http2Server;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();

  constructor(exchange: Exchange, log: (error: Error) => void) {
    // No limit for a whole request: an upload takes as long as it takes. Its headers have Node's own, one minute.
    this.#http1 = createHttp1(
      { requestTimeout: 0, keepAlive: true, keepAliveInitialDelay: clientPingEveryMs },
      exchange,
    );
    this.#http2 = createHttp2(
      {
        settings: { initialWindowSize: receiveWindowBytes, maxConcurrentStreams: callsPerConnectionMax },
        maxSessionMemory: sessionMemoryMb,
        // One for each upload that ends, and those that look whether the client is alive. (arrival.ts)
        maxOutstandingPings: callsPerConnectionMax + 1,
        ...cancelLimits,
      },
      exchange,
    );
    this.#http2.on("session", (session) => this.#welcome(session));
    this.#http2.on("sessionError", log);
    this.#http2.on("stream", endAtReset);
    const serveHttp1 = this.#http1.listeners("connection");
    this.#http1.removeAllListeners("connection");
    this.#http1.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      awaitProtocol(socket, (protocol) => {
        if (protocol === "http2") {
          // As a server of HTTP/2 alone makes them: a client that ended its half is gone, and its calls hear of it at once.
          socket.allowHalfOpen = false;
          this.#http2.emit("connection", socket);
        } else for (const serve of serveHttp1) serve.call(this.#http1, socket);
      });
    });
  }

  /** Listens; rejects as Node does. Resolves with the port. */
  async listen({ host, port }: ListenAddress): Promise<number> {
    this.#http1.listen(port, host);
    await once(this.#http1, "listening");
    const address = this.#http1.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  /** Takes no new connection and no new call; resolves when every connection has ended. */
  async end(): Promise<void> {
    const closed = new Promise((resolve) => this.#http1.close(resolve));
    for (const session of this.#sessions) session.close();
    this.#http1.closeIdleConnections();
    await closed;
  }

  /** Ends every connection now. */
  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #welcome(session: ServerHttp2Session): void {
    if (session.destroyed) return;
    this.#sessions.add(session);
    session.once("close", () => this.#sessions.delete(session));
    // Settings raise the window of each stream only; the session's own stays at 64 KiB without this.
    session.setLocalWindowSize(receiveConnectionWindowBytes);
    keepAlive(session);
  }
}
