import { hostName } from "../listeners/web/allowed-hosts.ts";

/** Reads a comma list of host names without ports. Undefined when one of them is none. */
export function parseHostNames(text: string): string[] | undefined {
  const names = text.split(",").map((name) => name.trim().toLowerCase());
  return names.every((name) => hostName(name) === name) ? names : undefined;
}

/** Reads a comma list of origins, each exactly as a browser writes it. Undefined when one of them is none: also for a pattern. */
export function parseOrigins(text: string): string[] | undefined {
  const origins = text.split(",").map((origin) => origin.trim());
  return origins.every(isOrigin) ? origins : undefined;
}

function isOrigin(text: string): boolean {
  if (!/^https?:\/\//.test(text) || text.includes("*") || !URL.canParse(text)) return false;
  return new URL(text).origin === text;
}
