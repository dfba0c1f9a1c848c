import type { ServiceConfig } from "./config/service-config.ts";

/** What this service does not insist on, of what a real cluster would have: one sentence each, for people. */
export function serviceRelaxations(
  config: Pick<ServiceConfig, "disk" | "ingress">,
  probe: "refuse" | "report",
): string[] {
  const relaxed: string[] = [];
  if (config.ingress === "unverified")
    relaxed.push("ingress unverified: nobody checks that only this service reaches a guest");
  if (probe === "report") relaxed.push("probe report: a guest that runs with privileges is logged, not refused");
  if (config.disk === "filesystem") relaxed.push("disk filesystem: a workspace's disk may be a mounted file system");
  return relaxed;
}
