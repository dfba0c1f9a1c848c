import type { DescService } from "@bufbuild/protobuf";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { PortService } from "@holdfast/api/holdfast/v1/port_pb";
import { SessionService } from "@holdfast/api/holdfast/v1/session_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { HoldfastError } from "@holdfast/errors";
import { addressText } from "../../config/service-config.ts";
import { loggerOn } from "../../logging.ts";
import { Admission } from "../../rpc/interceptors/admission.ts";
import { CallLog } from "../../rpc/interceptors/call-log.ts";
import { type ServedMethod, throughPipeline } from "../../rpc/interceptors/call-pipeline.ts";
import { mountService, type ServiceImplementation } from "../../rpc/service-implementation.ts";
import { TestClient } from "./grpc-client.testing.ts";
import { GrpcListener } from "./grpc-listener.ts";

export interface TestHandlers {
  readonly workspaces?: Partial<ServiceImplementation<typeof WorkspaceService>>;
  readonly executions?: Partial<ServiceImplementation<typeof ExecutionService>>;
  readonly files?: Partial<ServiceImplementation<typeof FileService>>;
  readonly sessions?: Partial<ServiceImplementation<typeof SessionService>>;
  readonly ports?: Partial<ServiceImplementation<typeof PortService>>;
  readonly inventory?: Partial<ServiceImplementation<typeof InventoryService>>;
}

/** The real listener and pipeline on a free port, with the handlers that a test is about. */
export async function listenWith(handlers: TestHandlers, callsMax?: number) {
  const logged: string[] = [];
  const logger = loggerOn("info", { write: (line) => void logged.push(line) });
  const admission = new Admission(callsMax);
  const deps = { admission, log: new CallLog(logger) };
  const mounted = <Service extends DescService>(
    service: Service,
    given: Partial<ServiceImplementation<Service>> | undefined,
  ): ServedMethod[] =>
    mountService(service, withRefusals(service, given)).map((method) => throughPipeline(method, deps));
  const services = new Map<DescService, ServedMethod[]>([
    [WorkspaceService, mounted(WorkspaceService, handlers.workspaces)],
    [ExecutionService, mounted(ExecutionService, handlers.executions)],
    [FileService, mounted(FileService, handlers.files)],
    [SessionService, mounted(SessionService, handlers.sessions)],
    [PortService, mounted(PortService, handlers.ports)],
    [InventoryService, mounted(InventoryService, handlers.inventory)],
  ]);
  const listener = await GrpcListener.open({
    listen: { host: "127.0.0.1", port: 0 },
    services,
    logger,
  });
  const address = addressText(listener.address);
  const client = new TestClient(address);
  return {
    listener,
    services,
    logger,
    admission,
    address,
    client,
    /** The log so far, parsed. */
    logged: (): Record<string, unknown>[] => logged.map((line) => JSON.parse(line) as Record<string, unknown>),
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await listener.close(AbortSignal.abort());
    },
  };
}

/** What a test did not give answers with WORKSPACE_NOT_FOUND. */
function withRefusals<Service extends DescService>(
  service: Service,
  given: Partial<ServiceImplementation<Service>> = {},
): ServiceImplementation<Service> {
  const refuse = () => Promise.reject(new HoldfastError("WORKSPACE_NOT_FOUND", { message: "not there" }));
  const refusals = Object.fromEntries(service.methods.map(({ localName }) => [localName, refuse]));
  return { ...refusals, ...given } as ServiceImplementation<Service>;
}
