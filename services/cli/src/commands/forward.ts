import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRequestSchema } from "@holdfast/api/holdfast/v1/port_pb";
import type { Connection } from "../connection.ts";
import { UsageError, wordsOf } from "../failure.ts";
import { remoteOf } from "../location.ts";
import { say } from "../print.ts";
import type { Session } from "../program.ts";
import { room } from "../room.ts";

const dataMaxBytes = 64 * 1024;

/** Listens on this machine's loopback and passes each connection on to a port of the workspace, until Ctrl-C. */
export async function forward({ connection, signal }: Session, workspace: string, ports: string) {
  const { workspaceId } = remoteOf(workspace);
  const { local, remote } = portsOf(ports);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    void pass(connection, { workspaceId, port: remote }, socket, signal).catch((error: unknown) => {
      if (!signal.aborted) console.error(`holdfast: ${wordsOf(error)}`);
    });
  });
  const failed = once(server, "error").then(([error]) => {
    throw new UsageError(`cannot listen on 127.0.0.1:${local}: ${error instanceof Error ? error.message : error}`);
  });
  server.listen(local, "127.0.0.1");
  await Promise.race([once(server, "listening"), failed]);
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : local;
  await say(`127.0.0.1:${port} leads to port ${remote} of ${workspaceId}; Ctrl-C ends it`);
  await Promise.race([failed, new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))]);
  server.close();
  signal.throwIfAborted();
}

/** One connection: each side's end is the other's, and what breaks is a reset, never an end. */
async function pass(
  { ports }: Connection,
  start: { readonly workspaceId: string; readonly port: number },
  socket: Socket,
  signal: AbortSignal,
): Promise<void> {
  const broken = new AbortController();
  socket.on("error", () => broken.abort());
  const until = AbortSignal.any([signal, broken.signal]);
  try {
    for await (const { event } of ports.connect(requestsOf(start, socket), { signal: until })) {
      if (event.case === "data") {
        if (!socket.write(event.value)) await room(socket);
      } else if (event.case === "closed") socket.end();
    }
  } catch (error) {
    socket.resetAndDestroy();
    if (!broken.signal.aborted) throw error;
  }
}

type Request = MessageInitShape<typeof ConnectRequestSchema>;

async function* requestsOf(
  value: { readonly workspaceId: string; readonly port: number },
  socket: Socket,
): AsyncGenerator<Request> {
  yield { request: { case: "start", value } };
  // Not by `for await` alone: that would destroy the socket with the requests, while responses still come.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    const data: Buffer = chunk;
    for (let at = 0; at < data.byteLength; at += dataMaxBytes) {
      yield { request: { case: "data", value: data.subarray(at, at + dataMaxBytes) } };
    }
  }
}

/** Reads `REMOTE` or `LOCAL:REMOTE`; local 0 takes a free one. */
function portsOf(text: string): { readonly local: number; readonly remote: number } {
  const [, first, second] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? [];
  const local = Number(first);
  const remote = Number(second ?? first);
  if (first === undefined || local > 65_535 || remote < 1 || remote > 65_535) {
    throw new UsageError(`forward takes PORT or LOCAL:PORT; it is "${text}"`);
  }
  return { local, remote };
}
