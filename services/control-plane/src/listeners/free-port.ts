import { once } from "node:events";
import { createServer } from "node:net";
import { addressText, type ListenAddress } from "../config/service-config.ts";
import { StartFailure } from "../start-failure.ts";

/** Throws a StartFailure when the address that a flag gave cannot be listened on, before anything is started for it. */
export async function assertPortFree(listen: ListenAddress, flag: string): Promise<void> {
  const server = createServer();
  try {
    server.listen(listen.port, listen.host);
    await once(server, "listening");
  } catch (error) {
    throw new StartFailure(`cannot listen on ${addressText(listen)} (${flag}): ${whyNot(error)}`, error);
  } finally {
    server.close();
  }
}

/** Why a bind failed, in words. */
export function whyNot(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  if (said.includes("EADDRINUSE")) return "the port is in use";
  if (said.includes("EACCES")) return "permission denied";
  if (said.includes("EADDRNOTAVAIL")) return "this machine has no such address";
  return said.replaceAll(/\s+/g, " ");
}
