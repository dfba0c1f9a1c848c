import { spawn } from "node:child_process";
import { createServer } from "node:net";

/**
 * What the link is measured against, in a process of its own: a TCP server that sends back what it gets; told a number of bytes as its
 * first line, it sends so many that a program writes.
 */
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => undefined);
  socket.once("data", (first) => {
    const bytes = /^output (\d+)\n$/.exec(first.toString("latin1"))?.[1];
    if (bytes === undefined) {
      socket.write(first);
      socket.on("data", (chunk) => void socket.write(chunk));
      return;
    }
    const program = spawn("head", ["-c", bytes, "/dev/zero"], { stdio: ["ignore", "pipe", "ignore"] });
    program.stdout.pipe(socket);
  });
});
server.listen(0, "127.34.0.2", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) process.send?.(address.port);
});
