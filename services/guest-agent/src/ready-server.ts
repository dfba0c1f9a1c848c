import { mkdirSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname } from "node:path";

/**
 * Answers readiness on a unix socket inside the pod with one word, `serving` or `stopping`, and closes: never over the network,
 * where a flood must not make a pod look dead (G34). Resolves once it can be asked.
 */
export function serveReadiness(path: string, isServing: () => boolean): Promise<Server> {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true }); // Of a previous agent process in this pod, which is gone: its container was restarted.
  const server = createServer((socket) => {
    socket.on("error", () => undefined); // Whoever asked is gone.
    socket.end(isServing() ? "serving\n" : "stopping\n");
    socket.resume();
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      server.on("error", (error) => console.error(`readiness socket: ${error.message}`));
      resolve(server);
    });
  });
}
