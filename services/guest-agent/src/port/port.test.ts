import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ConnectResponseSchema, PortService } from "@holdfast/api/holdfast/guest/v1/port_pb";
import { tunnelsMax } from "@holdfast/contract";
import type { CallerStream } from "@holdfast/guest-link";
import { describe, expect, it, onTestFinished } from "vitest";
import { type AgentProcess, agentProcess, eventually, soon } from "../testing/agent-process.testing.ts";

/** One end of a tunnel, with all that came. */
class Tunnel {
  stream: CallerStream | undefined;
  readonly events: string[] = [];
  readonly chunks: Buffer[] = [];
  receivedBytes = 0;
  readonly over: Promise<Error | undefined>;
  readonly #over = Promise.withResolvers<Error | undefined>();

  constructor() {
    this.over = this.#over.promise;
  }

  readonly listener = {
    message: (payload: Buffer) => {
      this.events.push(fromBinary(ConnectResponseSchema, payload).event.case ?? "");
    },
    data: (bytes: Buffer) => {
      this.receivedBytes += bytes.length;
      this.chunks.push(Buffer.from(bytes));
    },
    over: this.#over.resolve,
  };

  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  async send(data: Buffer): Promise<void> {
    if (this.stream?.sendData(data) === false) await this.stream.drained();
  }
}

async function tunnelTo(
  agent: AgentProcess,
  port: number,
  more: { host?: string; epoch?: bigint } = {},
): Promise<Tunnel> {
  const tunnel = new Tunnel();
  const { epoch } = more;
  tunnel.stream = await agent.link.open(PortService.method.connect, { port, host: more.host ?? "" }, tunnel.listener, {
    within: soon(),
    ...(epoch === undefined ? {} : { epoch }),
  });
  return tunnel;
}

/** A server in the guest. Given a host, only there. */
async function serverThat(
  serve: (socket: Socket) => void,
  host = "127.0.0.1",
): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    onTestFinished(() => {
      socket.destroy();
    });
    serve(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

const pattern = (bytes: number): Buffer => {
  const data = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += 1) data[at] = (at * 7 + (at >> 9)) & 0xff;
  return data;
};

describe("a tunnel", () => {
  it("G31 carries bytes both ways, to 127.0.0.1 and to ::1", async () => {
    const agent = await agentProcess();
    for (const host of ["127.0.0.1", "::1"]) {
      const { port } = await serverThat((socket) => socket.pipe(socket), host);
      const tunnel = await tunnelTo(agent, port, { host });
      await tunnel.send(Buffer.from([0, 255, 254, 10, 13]));
      tunnel.stream?.sendEof();
      expect(await tunnel.over).toBeUndefined();
      expect(tunnel.events).toEqual(["connected", "closed"]);
      expect([...tunnel.bytes]).toEqual([0, 255, 254, 10, 13]);
    }
  });

  it("B67 G31 a closed way up leaves the way down open: 1 MB, half-close, then 5 MB in answer", async () => {
    const agent = await agentProcess();
    const asked = pattern(1_000_000);
    const answer = pattern(5_000_000);
    let heard = Buffer.alloc(0);
    const { port } = await serverThat((socket) => {
      const parts: Buffer[] = [];
      socket.on("data", (bytes: Buffer) => parts.push(bytes));
      socket.on("end", () => {
        heard = Buffer.concat(parts);
        socket.end(answer);
      });
    });
    const tunnel = await tunnelTo(agent, port);
    await tunnel.send(asked);
    tunnel.stream?.sendEof();
    expect(await tunnel.over).toBeUndefined();
    expect(heard.equals(asked)).toBe(true);
    expect(tunnel.bytes.equals(answer)).toBe(true);
  });

  it("B67 G31 a closed way down leaves the way up open", async () => {
    const agent = await agentProcess();
    const late = pattern(2_000_000);
    const got = Promise.withResolvers<Buffer>();
    const { port } = await serverThat((socket) => {
      const parts: Buffer[] = [];
      socket.end("early");
      socket.on("data", (bytes: Buffer) => parts.push(bytes));
      socket.on("end", () => got.resolve(Buffer.concat(parts)));
    });
    const tunnel = await tunnelTo(agent, port);
    await eventually(() => tunnel.events.includes("closed"));
    expect(tunnel.bytes.toString()).toBe("early");
    await tunnel.send(late);
    tunnel.stream?.sendEof();
    expect((await got.promise).equals(late)).toBe(true);
    expect(await tunnel.over).toBeUndefined();
  });

  it("B67 a reset is told as one, after what came before it, and never as an end", async () => {
    const agent = await agentProcess();
    const { port } = await serverThat((socket) => {
      socket.write("before");
      socket.once("data", () => socket.resetAndDestroy());
    });
    const tunnel = await tunnelTo(agent, port);
    await eventually(() => tunnel.receivedBytes === 6);
    await tunnel.send(Buffer.from("now"));
    expect(await tunnel.over).toMatchObject({ reason: "PORT_RESET", metadata: { cause: "ECONNRESET" } });
    expect(tunnel.events).toEqual(["connected"]);
  });

  it("G31 nobody who listens, the agent's own port and other hosts are refused by name", async () => {
    const agent = await agentProcess();
    const { server, port } = await serverThat(() => undefined);
    server.close();
    await once(server, "close");
    expect(await (await tunnelTo(agent, port)).over).toMatchObject({
      reason: "PORT_REFUSED",
      metadata: { cause: "ECONNREFUSED", port: String(port) },
    });
    expect(await (await tunnelTo(agent, agent.port)).over).toMatchObject({
      reason: "PORT_REFUSED",
      metadata: { cause: "agent" },
    });
    for (const wrong of [{ port: 0 }, { port: 65_536 }, { port, host: "127.0.0.2" }, { port, host: "localhost" }]) {
      const { port: to, ...more } = wrong;
      expect(await (await tunnelTo(agent, to, more)).over).toMatchObject({ reason: "INVALID_REQUEST" });
    }
  });

  it("G31 128 at once, and no more; one that ends makes room", async () => {
    const agent = await agentProcess();
    const { port } = await serverThat((socket) => socket.resume());
    const tunnels: Tunnel[] = [];
    for (let at = 0; at < tunnelsMax; at += 1) tunnels.push(await tunnelTo(agent, port));
    await eventually(() => tunnels.every(({ events }) => events.length === 1));
    expect(await (await tunnelTo(agent, port)).over).toMatchObject({
      reason: "STREAM_CAPACITY",
      metadata: { limit: "128", setting: "tunnelsMax" },
    });
    tunnels[0]?.stream?.end({ clientClosed: true });
    let again: Tunnel | undefined;
    for (let tries = 0; tries < 100 && again?.events.length !== 1; tries += 1) {
      again = await tunnelTo(agent, port);
      await Promise.race([again.over, eventually(() => again?.events.length === 1)]);
    }
    expect(again?.events).toEqual(["connected"]);
  });

  it("G5 G31 a slow reader on either side holds the other back, and memory stays bounded", async () => {
    const agent = await agentProcess();
    const megabyte = Buffer.alloc(1024 * 1024, 1);
    const megabytes = 120; // Far more than all buffers on the way hold.
    let written = 0;
    let servers: Socket | undefined;
    const { port } = await serverThat((socket) => {
      servers = socket; // Does not read, and writes as much as it may.
      const more = (): void => {
        while (written < megabytes && socket.write(megabyte)) written += 1;
      };
      socket.on("drain", more);
      more();
    });
    const tunnel = await tunnelTo(agent, port);
    await eventually(() => tunnel.events.length === 1);
    tunnel.stream?.pause();
    const echo = await tunnelTo(agent, (await serverThat((socket) => socket.pipe(socket))).port);
    let echoed = 0;
    const echoes = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn += 1) {
        echoed += megabyte.length;
        await echo.send(megabyte);
        echo.chunks.length = 0;
      }
      await eventually(() => echo.receivedBytes === echoed, 20_000);
    };
    await echoes(40); // What that costs the agent is no part of what is measured.
    const before = agent.rss();
    let sent = 0;
    const sending = (async () => {
      for (; sent < megabytes; sent += 1) await tunnel.send(megabyte);
    })();
    sending.catch(() => undefined); // Ended with the test.
    // By the time that so much went through another tunnel of the same agent, both ways would have had all of theirs.
    await echoes(megabytes);
    expect(sent).toBeLessThan(megabytes);
    expect(written).toBeLessThan(megabytes);
    expect(agent.rss() - before).toBeLessThan(64 * 1024 * 1024);
    const other = await tunnelTo(agent, (await serverThat((socket) => socket.end("free"))).port);
    other.stream?.sendEof();
    expect(await other.over).toBeUndefined();
    servers?.destroy();
  }, 30_000);

  it("G5a is ended by name when another holder takes the guest, and the program sees it closed", async () => {
    const agent = await agentProcess();
    const closed = Promise.withResolvers<void>();
    const { port } = await serverThat((socket) => {
      socket.on("close", () => closed.resolve());
      socket.resume();
    });
    const tunnel = await tunnelTo(agent, port);
    await eventually(() => tunnel.events.length === 1);
    await agent.link.call(AgentService.method.fence, { epoch: 3n }, { within: soon() });
    expect(await tunnel.over).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    await tunnel.send(Buffer.from("x")).catch(() => undefined);
    await closed.promise;
    expect(await (await tunnelTo(agent, port)).over).toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    const next = await tunnelTo(agent, port, { epoch: 3n });
    await eventually(() => next.events.length === 1);
  });

  it("a caller that is lost resets the connection in the guest: the program never takes it for the end of what was sent", async () => {
    const agent = await agentProcess();
    const closed = Promise.withResolvers<Error>();
    const { port } = await serverThat((socket) => {
      socket.on("error", (error) => closed.resolve(error));
      socket.on("end", () => closed.resolve(new Error("an orderly end")));
      socket.resume();
    });
    const tunnel = await tunnelTo(agent, port);
    await eventually(() => tunnel.events.length === 1);
    await tunnel.send(Buffer.from("half of"));
    tunnel.stream?.destroy(new Error("cut by the test"));
    expect(await closed.promise).toMatchObject({ code: "ECONNRESET" });
  });
});
