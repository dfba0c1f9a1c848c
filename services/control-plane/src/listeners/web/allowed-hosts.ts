import type { WebRequest } from "./exchange.ts";

/** The names of this machine to itself. */
const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/**
 * The names that the listener answers to. A page of a stranger's site may reach a loopback port under the stranger's own name
 * (DNS rebinding), and is then of the same origin to its browser: the name is all that tells it from a page of ours.
 */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>;

  /** @param names as `hostName` writes them */
  constructor(names: readonly string[]) {
    this.#names = new Set([...loopbackNames, ...names]);
  }

  /** Undefined when every name that the request goes by is allowed; else the text for whoever sent it. */
  refusalOf(request: WebRequest): string | undefined {
    const said = [request.headers[":authority"], request.headers.host].filter((name) => name !== undefined);
    const foreign = said.map(String).find((authority) => !this.#names.has(hostName(authority) ?? ""));
    if (said.length > 0 && foreign === undefined) return undefined;
    const name = foreign === undefined ? "no name" : JSON.stringify(foreign.slice(0, 256));
    return (
      `Nothing was done: the request was addressed to ${name}, and this listener answers only to names that it was told ` +
      "(localhost, 127.0.0.1, [::1], its own address). Start the service with --web-allow-host NAME to add one.\n"
    );
  }
}

/** The host of "host" or "host:port", in lower case, IPv6 in brackets; undefined when it is neither. */
export function hostName(authority: string): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?$/i.exec(authority);
  return match?.[1]?.toLowerCase();
}
