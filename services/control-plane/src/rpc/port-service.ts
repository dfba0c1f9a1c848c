import type { ConnectRequest, PortService } from "@holdfast/api/holdfast/v1/port_pb";
import { outputChunkMaxBytes } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { WorkspaceRegistry } from "../registry.ts";
import { takeFirst } from "./first-request.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";
import { parseEpoch } from "./parse-fencing.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

/** `holdfast.v1.PortService`: parse, call, present. */
export function portService(registry: WorkspaceRegistry): ServiceImplementation<typeof PortService> {
  return {
    async *connect(requests, context) {
      const { signal } = context;
      const { first, rest } = await takeFirst(requests);
      if (first.request.case !== "start") throw invalidRequest([{ field: "start", description: "must come first" }]);
      const start = first.request.value;
      const id = parseWorkspaceId(start.workspaceId);
      const epoch = parseEpoch(start.epoch, context);
      const host = start.host === "::1" ? "::1" : "127.0.0.1";
      context.endsInDrainWith(() => tunnelLetGo(start.port));
      const outgoing = dataOf(rest);
      const events = registry.stream(id, signal, (workspace) =>
        workspace.connectPort({ port: start.port, host }, outgoing, signal, epoch),
      );
      for await (const event of events) {
        if (event.t === "data") {
          for (let at = 0; at < event.data.byteLength; at += outputChunkMaxBytes) {
            yield { event: { case: "data", value: event.data.subarray(at, at + outputChunkMaxBytes) } };
          }
        } else yield { event: { case: event.t, value: {} } };
      }
    },
  };
}

async function* dataOf(requests: AsyncIterable<ConnectRequest>): AsyncGenerator<Uint8Array> {
  for await (const { request } of requests) {
    if (request.case !== "data") throw invalidRequest([{ field: "start", description: "comes first, and once" }]);
    if (request.value.byteLength > 0) yield request.value;
  }
}

/** What a tunnel ends with when the service drains. */
function tunnelLetGo(port: number): HoldfastError {
  return new HoldfastError("SERVICE_DRAINING", {
    message: `This process is stopping and let the connection to port ${port} go. What was delivered came whole and in order; what the program took of what was sent is not known. No program was ended. Connect again; another process, or this one when it is back, will serve it.`,
    metadata: { port: String(port) },
  });
}
