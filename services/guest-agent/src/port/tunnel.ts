import { connect, type NetConnectOpts, type Socket } from "node:net";
import { ConnectResponseSchema } from "@holdfast/api/holdfast/guest/v1/port_pb";
import { tunnelConnectTimeoutMs } from "@holdfast/contract";
import { type AgentStream, AnsweredError, type Upload } from "@holdfast/guest-link";

export interface TunnelTarget {
  readonly host: string;
  readonly port: number;
}

/**
 * One connection to a program of the guest: bytes both ways, each way ended by itself, and a slow side holds back the other through
 * both sockets. What breaks is told by name: a reset is never taken for an end.
 */
export class Tunnel {
  readonly #stream: AgentStream;
  readonly #upload: Upload;
  readonly #target: TunnelTarget;
  readonly #dial: (options: NetConnectOpts) => Socket;
  readonly #over = Promise.withResolvers<void>();

  constructor(
    stream: AgentStream,
    upload: Upload,
    target: TunnelTarget,
    dial: (options: NetConnectOpts) => Socket = connect,
  ) {
    this.#dial = dial;
    this.#stream = stream;
    this.#upload = upload;
    this.#target = target;
    this.#over.promise.catch(() => undefined); // `run` tells it.
  }

  /** Ends both directions at once; the caller is told why, and the program sees a reset: what it had is not all. */
  end(why: Error): void {
    this.#over.reject(why);
  }

  /** Dials in this very step. Resolves once both directions have ended in order; rejects with what broke. */
  async run(): Promise<void> {
    const { signal } = this.#stream.context;
    const gone = (): void => this.end(signal.reason);
    signal.addEventListener("abort", gone, { once: true });
    const socket = this.#dial({ ...this.#target, allowHalfOpen: true, noDelay: true });
    try {
      if (signal.aborted) gone();
      await Promise.race([this.#connected(socket), this.#over.promise]);
      this.#say("connected");
      socket.on("error", (error) => this.#over.reject(this.#broken(error)));
      const both = Promise.all([this.#down(socket), this.#up(socket)]);
      both.catch((error) => this.#over.reject(error));
      await Promise.race([both, this.#over.promise]);
      socket.destroy();
    } catch (error) {
      socket.on("error", () => undefined); // Of one that is destroyed; its answer has been given.
      socket.resetAndDestroy();
      throw error;
    } finally {
      signal.removeEventListener("abort", gone);
    }
  }

  #connected(socket: Socket): Promise<void> {
    const { host, port } = this.#target;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(this.#refused(`nobody answered within ${tunnelConnectTimeoutMs} ms`, "timeout"));
      }, tunnelConnectTimeoutMs);
      const settle = (): void => {
        clearTimeout(timer);
        socket.off("error", failed);
      };
      const failed = (error: Error): void => {
        settle();
        const code = "code" in error ? String(error.code) : error.message;
        reject(this.#refused(code === "ECONNREFUSED" ? `nobody listens on ${host}:${port}` : code, code));
      };
      socket.once("error", failed);
      socket.once("close", settle);
      socket.once("connect", () => {
        settle();
        resolve();
      });
    });
  }

  /** From the program to the caller. */
  async #down(socket: Socket): Promise<void> {
    const ended = Promise.withResolvers<void>();
    socket.on("data", (bytes: Buffer) => {
      if (this.#stream.sendData(bytes)) return;
      socket.pause();
      this.#stream.drained().then(
        () => socket.resume(),
        () => undefined, // The caller is gone; its signal ends the tunnel.
      );
    });
    socket.once("end", () => ended.resolve());
    await ended.promise;
    this.#say("closed");
  }

  /** From the caller to the program. */
  async #up(socket: Socket): Promise<void> {
    for (let parts = await this.#upload.read(); parts !== undefined; parts = await this.#upload.read()) {
      let ready = true;
      for (const part of parts) ready = socket.write(part);
      if (!ready) await drained(socket);
    }
    // Not the callback of `end`: that comes for a failure too, before the error that names it.
    const finished = new Promise<void>((resolve) => socket.once("finish", resolve));
    socket.end();
    await finished;
  }

  #say(event: "connected" | "closed"): void {
    this.#stream.sendMessage(ConnectResponseSchema, { event: { case: event, value: {} } });
  }

  #refused(why: string, cause: string): AnsweredError {
    const { host, port } = this.#target;
    return new AnsweredError("PORT_REFUSED", `Port ${port} of the guest cannot be reached at ${host}: ${why}.`, {
      port: String(port),
      cause,
    });
  }

  #broken(error: Error): AnsweredError {
    const { port } = this.#target;
    const cause = "code" in error ? String(error.code) : error.message;
    return new AnsweredError(
      "PORT_RESET",
      `The program at port ${port} of the guest broke the connection (${cause}). What it sent before was delivered; what it took of what was sent is not known.`,
      { port: String(port), cause },
    );
  }
}

/** Resolves when the socket takes more; also when it is closed, which is told elsewhere. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      socket.off("drain", settle);
      socket.off("close", settle);
      resolve();
    };
    socket.on("drain", settle);
    socket.on("close", settle);
    if (socket.destroyed || !socket.writableNeedDrain) settle();
  });
}
