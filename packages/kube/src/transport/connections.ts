import http from "node:http";
import https, { type AgentOptions, type RequestOptions } from "node:https";

/** How long an idle connection is kept. Shorter than API servers keep theirs, so that they do not close one as it is used. */
const idleConnectionMs = 30_000;
/** Connections at once; more requests wait, under their own deadlines. */
const connectionsMax = 128;

const tlsMembers = ["ca", "cert", "key", "pfx", "passphrase", "servername", "rejectUnauthorized"] as const;
type Tls = Pick<AgentOptions, (typeof tlsMembers)[number]>;

/**
 * The kept-alive connections to one API server. client-node makes a new pool for every request, which means a new TLS handshake for
 * every request; this keeps one for as long as the credentials are the same.
 */
export class Connections {
  #current: { readonly tls: Tls; readonly agent: http.Agent } | undefined;
  readonly #agents = new Set<http.Agent>();

  /** The agent for these credentials. An agent of earlier ones serves its requests to their end and takes no more. */
  agentFor(secure: boolean, options: RequestOptions): http.Agent {
    const tls: Tls = Object.fromEntries(
      tlsMembers.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
    );
    if (this.#current && sameTls(this.#current.tls, tls)) return this.#current.agent;
    const pool = {
      keepAlive: true,
      timeout: idleConnectionMs,
      maxSockets: connectionsMax,
      maxFreeSockets: connectionsMax,
    };
    const agent = secure ? new https.Agent({ ...pool, ...tls }) : new http.Agent(pool);
    this.#current = { tls, agent };
    this.#agents.add(agent);
    return agent;
  }

  /** Destroys every connection, idle or not. */
  close(): void {
    for (const agent of this.#agents) agent.destroy();
    this.#agents.clear();
    this.#current = undefined;
  }
}

function sameTls(one: Tls, other: Tls): boolean {
  return tlsMembers.every((name) => sameValue(one[name], other[name]));
}

function sameValue(one: unknown, other: unknown): boolean {
  if (Buffer.isBuffer(one) && Buffer.isBuffer(other)) return one.equals(other);
  return one === other;
}
