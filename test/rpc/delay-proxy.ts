import { connect, createServer, type Socket } from "node:net";

/** What may be under way in one direction of one connection. */
const underWayBytes = 64 * 1024 * 1024;

/** A relay that passes everything on `delayMs` later, in both directions, however much it is. */
export async function delayProxy(address: string, delayMs: number): Promise<AsyncDisposable & { address: string }> {
  const [host, port] = address.split(":");
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), host);
    for (const socket of [near, far]) {
      open.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.once("close", () => {
        near.destroy();
        far.destroy();
      });
    }
    relay(near, far, delayMs);
    relay(far, near, delayMs);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  return {
    address: `127.0.0.1:${typeof bound === "object" && bound ? bound.port : 0}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}

function relay(from: Socket, to: Socket, delayMs: number): void {
  let underWay = 0;
  from.on("data", (chunk) => {
    underWay += chunk.length;
    if (underWay > underWayBytes) from.pause();
    setTimeout(() => {
      underWay -= chunk.length;
      if (to.destroyed) return;
      to.write(chunk);
      if (underWay < underWayBytes) from.resume();
    }, delayMs);
  });
  from.once("end", () => setTimeout(() => to.end(), delayMs));
}
