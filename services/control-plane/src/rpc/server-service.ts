import type { ServerService } from "@holdfast/api/holdfast/v1/server_pb";
import type { ServerInfo } from "../server-info.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

/** `holdfast.v1.ServerService`: asks nobody but the process itself. */
export function serverService(info: () => ServerInfo): ServiceImplementation<typeof ServerService> {
  return {
    async getServerInfo() {
      const { version, features, limits, counters } = info();
      const told = Object.entries(limits).map(([name, value]) => [name, BigInt(value)] as const);
      return { version, features: [...features], limits: Object.fromEntries(told), counters: { ...counters } };
    },
  };
}
