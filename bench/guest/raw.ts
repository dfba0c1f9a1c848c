import { fork } from "node:child_process";
import { connect, type Socket } from "node:net";
import { join } from "node:path";

const host = "127.34.0.2";

/** The other side of the comparisons. */
export interface Raw {
  readonly pid: number;
  /** Milliseconds until a byte is back. */
  echo(): Promise<number>;
  /** Milliseconds until so many bytes of a program's output have come over a socket. */
  output(bytes: number): Promise<number>;
  [Symbol.dispose](): void;
}

export async function startRaw(): Promise<Raw> {
  const child = fork(join(import.meta.dirname, "raw-server.ts"), {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const port = await new Promise<number>((resolve) => child.once("message", (told) => resolve(Number(told))));
  const open = (): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true }, () => resolve(socket));
      socket.once("error", reject);
    });
  const echoing = await open();
  return {
    pid: child.pid ?? 0,
    async echo() {
      const began = performance.now();
      const back = new Promise((resolve) => echoing.once("data", resolve));
      echoing.write("x");
      await back;
      return performance.now() - began;
    },
    async output(bytes) {
      const socket = await open();
      const began = performance.now();
      socket.write(`output ${bytes}\n`);
      let got = 0;
      socket.on("data", (chunk) => {
        got += chunk.length;
      });
      await new Promise((resolve) => socket.once("close", resolve));
      if (got !== bytes) throw new Error(`${got} of ${bytes} bytes came`);
      return performance.now() - began;
    },
    [Symbol.dispose]() {
      echoing.destroy();
      child.kill();
    },
  };
}
