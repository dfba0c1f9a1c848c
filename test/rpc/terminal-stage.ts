import { systemClock } from "@holdfast/async";
import { guestDialler } from "@holdfast/guest-client";
import { openWish, patient, stage, workspaceId } from "@holdfast/testkit";
import type { WorkspaceDeps } from "@holdfast/workspace";
import { onTestFinished } from "vitest";
import { listenOnBoth } from "../../services/control-plane/src/listeners/both-listeners.testing.ts";
import { WorkspaceRegistry } from "../../services/control-plane/src/registry.ts";
import { executionService } from "../../services/control-plane/src/rpc/execution-service.ts";
import { portService } from "../../services/control-plane/src/rpc/port-service.ts";
import { sessionService } from "../../services/control-plane/src/rpc/session-service.ts";
import { guestProcess } from "../guest/guest-process.ts";
import { cuttingProxy } from "./cutting-proxy.ts";

/**
 * A real agent in a process of its own, behind a proxy; real listeners and the real pipeline before it, as many replicas as are asked for.
 * Only the cluster is in memory.
 */
export async function terminalStage(replicas = 1) {
  const agent = await guestProcess();
  const hop2 = await cuttingProxy(agent.address);
  onTestFinished(() => hop2[Symbol.asyncDispose]());
  const { deps: inMemory, cluster } = stage({ probe: "report" });
  const dialler = guestDialler(systemClock);
  const deps: WorkspaceDeps = {
    ...inMemory,
    clock: systemClock,
    guests: {
      guest(address, unreached) {
        const guest = dialler.guest({ host: "127.0.0.1", port: hop2.port, podUid: agent.address.podUid }, unreached);
        // The pod's own address leads nowhere; everybody else is to believe it.
        return Object.defineProperty(guest, "address", { value: address });
      },
    },
  };
  const services = await Promise.all(
    Array.from({ length: replicas }, async () => {
      const registry = new WorkspaceRegistry(deps);
      const listeners = await listenOnBoth({
        executions: executionService(registry),
        sessions: sessionService(registry),
        ports: portService(registry),
      });
      onTestFinished(async () => {
        registry.closeAll();
        await listeners[Symbol.asyncDispose]();
      });
      const [host = "", port = ""] = listeners.address.split(":");
      const hop1 = await cuttingProxy({ host, port: Number(port) });
      const [webHost = "", webPort = ""] = listeners.webAddress.split(":");
      const webHop1 = await cuttingProxy({ host: webHost, port: Number(webPort) });
      onTestFinished(() => hop1[Symbol.asyncDispose]());
      onTestFinished(() => webHop1[Symbol.asyncDispose]());
      return { registry, listeners, hop1, webHop1, at: { address: hop1.address, webAddress: webHop1.address } };
    }),
  );
  const [first] = services;
  if (first === undefined) throw new Error("no replica");
  const workspace = workspaceId("w");
  await first.registry.open(workspace, openWish, patient);
  return { ...first, services, agent, hop2, cluster, workspaceId: workspace as string };
}
