import { createServer } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import type { Logger } from "pino";
import { ApiEdge } from "../api-server/http/api-edge.ts";
import type { Registry } from "../api-server/registry/registry.ts";
import type { FaultPlan } from "../faults/fault-plan.ts";

/** The bearer token of a cluster in memory: it keeps nobody out. */
export const memoryToken = "memory";

/** Plain HTTP over streams in this process: a real client's own transport, without a socket. */
export interface MemoryListener {
  /** One connection, for whoever goes by this name in fault rules. */
  connect(by: string): Duplex;
  stop(): void;
}

export function openMemoryListener(options: {
  readonly registry: Registry;
  readonly faults: FaultPlan;
  readonly log: Logger;
  readonly now: () => Date;
}): MemoryListener {
  const edge = new ApiEdge({
    ...options,
    isToken: (token) => token === memoryToken,
    bookmarkIntervalMs: undefined,
    faultConsole: undefined,
  });
  const callers = new WeakMap<object, string>();
  const open = new Set<Duplex>();
  const server = createServer((message, response) => {
    void edge.serve(message, response, callers.get(message.socket) ?? "client");
  });
  return {
    connect: (by) => {
      const [ours, theirs] = duplexPair();
      callers.set(ours, by);
      open.add(ours);
      ours.once("close", () => open.delete(ours));
      // A socket that is cut is cut at both ends; a pair of streams only knows of its own.
      ours.once("close", () => theirs.destroy());
      theirs.once("close", () => ours.destroy());
      server.emit("connection", ours);
      return asSocket(theirs);
    },
    stop: () => {
      edge.stop();
      for (const one of open) one.destroy();
      server.close();
    },
  };
}

/** What HTTP clients ask of a socket besides reading and writing; none of it means anything in memory. */
function asSocket(stream: Duplex): Duplex {
  const same = (): Duplex => stream;
  return Object.assign(stream, { setKeepAlive: same, setNoDelay: same, setTimeout: same, ref: same, unref: same });
}
