import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Credentials } from "../credentials.ts";
import { ApiEdge, type ApiEdgeOptions } from "./api-edge.ts";

export interface ApiListenerOptions extends Omit<ApiEdgeOptions, "isToken"> {
  readonly credentials: Credentials;
}

/** Whoever comes over the network, to fault rules. */
const networkCaller = "client";

/** The HTTPS listener on loopback. */
export class ApiListener {
  readonly #server: Server;
  readonly #edge: ApiEdge;

  constructor(options: ApiListenerOptions) {
    const { credentials, log } = options;
    const tokenHash = hashOf(credentials.token);
    // Digests of equal length are compared, in a time that does not depend on the token sent.
    const isToken = (token: string): boolean => timingSafeEqual(hashOf(token), tokenHash);
    this.#edge = new ApiEdge({ ...options, isToken });
    const { key, cert } = credentials;
    this.#server = createServer({ key, cert, keepAliveTimeout: 120_000 }, (message, response) => {
      void this.#edge.serve(message, response, networkCaller);
    });
    this.#server.on("error", (error) => log.warn({ err: error }, "API server socket failed"));
    this.#server.on("tlsClientError", (error) => log.debug({ err: error.message }, "TLS handshake failed"));
  }

  /** Listens on loopback and resolves with the port. Rejects when the port is taken. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", () => {
        this.#server.off("error", reject);
        resolve(portOf(this.#server.address()));
      });
    });
  }

  /** Ends every watch and connection, and stops listening. */
  async stop(): Promise<void> {
    this.#edge.stop();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    await Promise.race([closed, delay(1_000, undefined, { ref: false })]);
    this.#server.closeAllConnections();
    await closed;
  }
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("The API server has no TCP address.");
  return address.port;
}
