import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { PortService } from "@holdfast/api/holdfast/v1/port_pb";
import { SessionService } from "@holdfast/api/holdfast/v1/session_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { holderEpochHeader } from "@holdfast/contract";
import { UsageError } from "./failure.ts";

/** Clients of one service. Dialled at the first call. */
export interface Connection {
  readonly workspaces: Client<typeof WorkspaceService>;
  readonly executions: Client<typeof ExecutionService>;
  readonly files: Client<typeof FileService>;
  readonly inventory: Client<typeof InventoryService>;
  readonly sessions: Client<typeof SessionService>;
  readonly ports: Client<typeof PortService>;
}

/** Connects to `host:port`, or to an http or https address; with an epoch, every call acts as the holder of that number. */
export function connectionTo(server: string, holderEpoch?: bigint): Connection {
  const baseUrl = /^https?:\/\//.test(server) ? server : `http://${server}`;
  if (!URL.canParse(baseUrl)) throw new UsageError(`--server must be host:port or an address; it is "${server}"`);
  const interceptors = holderEpoch === undefined ? [] : [actingAs(holderEpoch)];
  const transport = createGrpcTransport({ baseUrl, interceptors });
  // A terminal may be silent for hours: only an answered ping tells a quiet one from a lost one.
  const watched = createGrpcTransport({ baseUrl, interceptors, pingIntervalMs: 5_000, pingTimeoutMs: 10_000 });
  return {
    workspaces: createClient(WorkspaceService, transport),
    executions: createClient(ExecutionService, transport),
    files: createClient(FileService, transport),
    inventory: createClient(InventoryService, transport),
    sessions: createClient(SessionService, watched),
    ports: createClient(PortService, watched),
  };
}

/** The epoch as metadata, which stands for the field of each call that changes something; the others have no use for it. */
function actingAs(holderEpoch: bigint): Interceptor {
  return (next) => (request) => {
    request.header.set(holderEpochHeader, String(holderEpoch));
    return next(request);
  };
}
