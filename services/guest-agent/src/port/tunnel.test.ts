import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { AgentStream, Upload } from "@holdfast/guest-link";
import { expect, it } from "vitest";
import { Tunnel } from "./tunnel.ts";

/** A program's side that has said all it will, and takes nothing of what it is sent. */
class StandingProgram extends Duplex {
  /** Fails what it was offered, as the kernel does after a reset. */
  readonly offered = Promise.withResolvers<(error: Error) => void>();

  constructor() {
    super({ allowHalfOpen: true });
    this.push(null);
    queueMicrotask(() => this.emit("connect"));
  }

  override _read(): void {}

  override _write(_bytes: Buffer, _encoding: string, failed: (error: Error) => void): void {
    this.offered.resolve(failed); // Not taken.
  }

  resetAndDestroy(): this {
    return this.destroy();
  }
}

it("B67 what the program has not taken when it resets is no end, also where both directions were ended before", async () => {
  const program = new StandingProgram();
  const said: unknown[] = [];
  const stream = {
    context: { epoch: undefined, signal: new AbortController().signal },
    sendMessage: (_: unknown, message: unknown) => said.push(message),
  } as unknown as AgentStream;
  const parts = [[Buffer.from("the last order")], undefined];
  const upload = { read: async () => parts.shift() } as unknown as Upload;
  const target = { host: "127.0.0.1", port: 1 };
  const running = new Tunnel(stream, upload, target, () => program as unknown as Socket).run();
  running.catch(() => undefined);
  const reset = await program.offered.promise;
  await new Promise(setImmediate); // Both ends are in place by then: EOF stands behind what waits.
  expect(said).toHaveLength(2);
  reset(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  await expect(running).rejects.toMatchObject({ reason: "PORT_RESET", metadata: { cause: "EPIPE" } });
});
