import { connect, createServer, type Socket } from "node:net";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { type Clock, systemClock } from "@holdfast/async";
import { LinkServer } from "./link-server.ts";
import { Router } from "./router.ts";
import type { AgentStream } from "./stream-agent.ts";

export const host = "127.31.0.1";
export const token = "a pod's uid";

/** A link server with a Health that answers, a Probe that waits for its signal, and a stream handler of the test's. */
export async function listening(
  onStream: (stream: AgentStream) => Promise<void> = async () => undefined,
  clock: Clock = systemClock,
) {
  let gaveUp = 0;
  const router = new Router()
    .unary(AgentService.method.health, async () => ({ serving: true, bootId: "boot-1" }))
    .unary(AgentService.method.probe, (_request, { signal }) => {
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          gaveUp += 1;
          reject(signal.reason);
        });
      });
    })
    .stream(ExecutionService.method.followExecution, (_request, stream) => onStream(stream));
  const server = new LinkServer({ token, bootId: "boot-1", features: ["executions"] }, router, clock);
  const port = await server.listen(host, 0);
  return {
    server,
    port,
    target: { host, port, token },
    get gaveUp() {
      return gaveUp;
    },
    [Symbol.dispose]: () => server.close(),
  };
}

/** A relay that records what passes, and can be cut. */
export async function relay(target: { host: string; port: number }) {
  const sockets = new Set<Socket>();
  const up: Buffer[] = [];
  const down: Buffer[] = [];
  let connections = 0;
  let frozen = false;
  const server = createServer((from) => {
    connections += 1;
    if (frozen) {
      sockets.add(from);
      from.on("error", () => undefined);
      return;
    }
    const to = connect(target.port, target.host);
    for (const socket of [from, to]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        from.destroy();
        to.destroy();
      });
    }
    from.on("data", (chunk) => {
      up.push(chunk);
      if (!frozen) to.write(chunk);
    });
    to.on("data", (chunk) => {
      down.push(chunk);
      if (!frozen) from.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  return {
    host,
    port: address.port,
    up: () => Buffer.concat(up),
    down: () => Buffer.concat(down),
    get connections() {
      return connections;
    },
    /** Passes nothing on any more, and refuses nobody: as if the packets were dropped. */
    freeze: () => {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Resolves once it holds; polls, since it is about another process's or socket's state. */
export async function eventually(holds: () => boolean, withinMs = 5_000): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() > endsAt) throw new Error(`did not become true within ${withinMs} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
