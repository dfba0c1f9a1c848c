import { createServer, type Socket } from "node:net";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { type Clock, systemClock } from "@holdfast/async";
import { onTestFinished } from "vitest";
import { ControlAgent } from "./control-agent.ts";
import { greet, type ProvedCaller } from "./handshake-agent.ts";
import { LinkClient } from "./link-client.ts";
import { host, token } from "./loopback.testing.ts";
import { Router } from "./router.ts";
import { AgentStream } from "./stream-agent.ts";

/** A health that answers, a probe that never does, and streams that stand until their caller ends them. */
const router = new Router()
  .unary(AgentService.method.health, async () => ({ serving: true, bootId: "boot-1" }))
  .unary(AgentService.method.probe, () => new Promise(() => undefined))
  .stream(ExecutionService.method.followExecution, async (_request, stream) => void (await stream.callerEnd));

export const identity = { token, bootId: "boot-1", features: [] };

/** Which connection proved itself on a socket. */
export type Phase = "control" | "stream";

/** Serves one connection as an agent does. `full`: is turned away for want of room once it has proved the token, which is `secret`. */
export function serve(socket: Socket, full?: string, secret = token): Promise<Phase> {
  return new Promise((resolve) => {
    const serves = ({ socket: framed, phase }: ProvedCaller): void => {
      const needs = { router, bootId: "boot-1", clock: systemClock, tellForced: () => undefined };
      if (phase === "control")
        framed.enter(phase, new ControlAgent(framed, router, "boot-1", systemClock, () => undefined));
      else framed.enter(phase, new AgentStream(framed, needs, () => undefined));
      resolve(phase);
    };
    greet(socket, { ...identity, token: secret }, { mayEnter: () => full, proved: serves, settled: () => undefined });
  });
}

/** A client of an agent that takes each connection as the test says. A stream's connection is made before the control connection. */
export async function clientOf(onConnection: (socket: Socket, nth: number) => void, clock: Clock = systemClock) {
  const made: Socket[] = [];
  const server = createServer((socket) => {
    made.push(socket);
    socket.on("error", () => undefined);
    onConnection(socket, made.length);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  const counts = { connections: 0 };
  const client = new LinkClient({ host, port: address.port, token, counts }, clock);
  onTestFinished(() => {
    client.close();
    for (const socket of made) socket.destroy();
    server.close();
  });
  /** `counts`: connections that stand, or are being made; `made`: all that ever were, in order. */
  return { client, counts, made };
}

export const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once("close", () => resolve()));
