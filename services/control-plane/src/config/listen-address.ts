import { isIP } from "node:net";
import type { ListenAddress } from "./service-config.ts";

/** Reads "host:port", IPv6 in brackets. Undefined when it is not one. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+)):([0-9]{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || !(port <= 65_535)) return undefined;
  if (match?.[1] !== undefined && isIP(host) !== 6) return undefined;
  return { host, port };
}

/** True only for an address that nobody outside this machine can reach. */
export function isLoopback({ host }: ListenAddress): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
