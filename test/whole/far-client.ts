import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy to `target` that delivers every byte `delayMs` later in each direction, and caps no rate. */
export async function delayed(target: string, delayMs: number): Promise<AsyncDisposable & { readonly target: string }> {
  const [host = "", port = ""] = target.split(":");
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (bytes: Buffer) => later(() => to.write(bytes)));
      from.on("end", () => later(() => to.end()));
      from.on("error", () => to.destroy());
      from.on("close", () => sockets.delete(from));
    }
  });
  const later = (then: () => void): void => void setTimeout(then, delayMs);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    target: `127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
