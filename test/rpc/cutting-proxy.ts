import { connect, createServer, type Socket } from "node:net";
import { setTimeout as silence } from "node:timers/promises";

/** Seen from who dials: to the server, or from it. */
export type Direction = "there" | "back";

/** A relay whose connections can be cut at any byte, deafened or stopped, in each direction by itself. */
export interface CuttingProxy extends AsyncDisposable {
  readonly port: number;
  readonly address: string;
  /** Connections that stand. */
  readonly connections: number;
  /** Ends every connection now. */
  cut(): void;
  /** Passes so many bytes more in this direction, over all connections, and then ends the connection that carried the last. */
  cutAfter(direction: Direction, bytes: number): Promise<void>;
  /** What comes in this direction from now on is taken and never passed on; the next connection is whole again. Ends by `cut`. */
  swallow(direction: Direction): { readonly swallowed: Promise<void> };
  /** Swallows, and cuts so long after the first that was swallowed: what was said the other way has had an effect that nobody was told of. */
  cutAfterSwallowing(direction: Direction, silenceMs: number): Promise<void>;
  /** Passes nothing on over the connections that stand for so long, and says nothing about it, as a peer that was stopped; then ends every one. */
  cutAfterSilence(silenceMs: number): Promise<void>;
}

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  stalled: boolean;
  deaf: Direction | undefined;
}

export async function cuttingProxy(target: { readonly host: string; readonly port: number }): Promise<CuttingProxy> {
  const pairs = new Set<Pair>();
  let planned: { direction: Direction; left: number; done: () => void } | undefined;
  let heard = (): void => undefined;
  const end = (pair: Pair): void => {
    pair.near.destroy();
    pair.far.destroy();
    // One that ends by itself while it is deaf passes nothing on either.
    if (pairs.delete(pair) && pair.deaf !== undefined) heard();
  };
  const pass = (pair: Pair, direction: Direction, chunk: Buffer): void => {
    const from = direction === "there" ? pair.near : pair.far;
    const to = direction === "there" ? pair.far : pair.near;
    if (pair.stalled) return;
    if (pair.deaf === direction) {
      heard();
      return;
    }
    if (planned?.direction === direction) {
      const plan = planned;
      if (chunk.length > plan.left) {
        planned = undefined;
        to.write(chunk.subarray(0, plan.left), () => end(pair));
        from.pause();
        plan.done();
        return;
      }
      plan.left -= chunk.length;
    }
    if (to.write(chunk)) return;
    from.pause();
    to.once("drain", () => from.resume());
  };
  const server = createServer((near) => {
    const far = connect(target.port, target.host);
    const pair: Pair = { near, far, stalled: false, deaf: undefined };
    pairs.add(pair);
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.once("close", () => end(pair));
    }
    near.on("data", (chunk) => pass(pair, "there", chunk));
    far.on("data", (chunk) => pass(pair, "back", chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  if (typeof bound !== "object" || bound === null) throw new Error("the proxy has no address");
  const cut = (): void => {
    for (const pair of [...pairs]) end(pair);
  };
  const swallow = (direction: Direction) => {
    for (const pair of pairs) pair.deaf = direction;
    const swallowed = new Promise<void>((resolve) => {
      heard = resolve;
    });
    return { swallowed };
  };
  return {
    port: bound.port,
    address: `127.0.0.1:${bound.port}`,
    get connections() {
      return pairs.size;
    },
    cut,
    cutAfter(direction, bytes) {
      return new Promise((done) => {
        planned = { direction, left: bytes, done };
      });
    },
    swallow,
    async cutAfterSwallowing(direction, silenceMs) {
      await swallow(direction).swallowed;
      await silence(silenceMs); // The fault itself.
      cut();
    },
    async cutAfterSilence(silenceMs) {
      for (const pair of pairs) pair.stalled = true;
      await silence(silenceMs); // The fault itself.
      cut();
    },
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
    },
  };
}
