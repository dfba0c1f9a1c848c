import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { terminalStage } from "./terminal-stage.ts";

const main = join(import.meta.dirname, "../../services/cli/src/main.ts");

/** Runs it, from a free port here to this one there. */
async function forwarding(port: number) {
  const { at, workspaceId } = await terminalStage();
  const env = { ...process.env, HOLDFAST_SERVER: at.address };
  const argv = ["--disable-warning=ExperimentalWarning", main, "forward", workspaceId, `0:${port}`];
  const child = spawn(process.execPath, argv, { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const told = { out: "", errors: "" };
  child.stdout.on("data", (data) => {
    told.out += data;
  });
  child.stderr.on("data", (data) => {
    told.errors += data;
  });
  await expect.poll(() => told.out + told.errors, { timeout: 20_000 }).toMatch(/127\.0\.0\.1:\d+ leads to port/);
  const local = Number(/127\.0\.0\.1:(\d+)/.exec(told.out)?.[1]);
  return {
    told,
    connect: (): Socket => connect({ port: local, host: "127.0.0.1", allowHalfOpen: true }),
    async end() {
      child.kill("SIGINT");
      await once(child, "close");
    },
  };
}

/** A server that answers with what it was sent, once its client has closed its side. */
async function mirror(): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, async (socket) => {
    const taken: Buffer[] = [];
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) taken.push(chunk);
    socket.end(Buffer.concat(taken));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe("holdfast forward", () => {
  it("B67 passes each side's bytes and its end on, whole, and has nothing to say about it", async () => {
    const through = await forwarding(await mirror());
    const data = randomBytes(8 * 1024 * 1024);
    const socket = through.connect();
    socket.end(data);
    expect((await buffer(socket)).equals(data)).toBe(true);
    await through.end();
    expect(through.told.errors).not.toContain("Warning");
  });

  it("B67 resets a connection to a port where nobody listens, and names the reason", async () => {
    const through = await forwarding(1);
    const [error] = await once(through.connect(), "error");
    expect(error).toMatchObject({ code: "ECONNRESET" });
    await expect.poll(() => through.told.errors).toContain("PORT_REFUSED");
    await through.end();
  });
});
