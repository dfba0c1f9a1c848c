import type { EventEmitter } from "node:events";
import type { Http2Server, ServerHttp2Session } from "node:http2";
import type * as grpc from "@grpc/grpc-js";
import {
  cancelledCallsBurstMax,
  cancelledCallsPerSecondMax,
  receiveConnectionWindowBytes,
  receiveWindowBytes,
} from "@holdfast/contract";

/**
 * Raises what the server lets a client send before it has been read (64 KiB per round trip without it), and how many calls it may cancel. grpc-js has no option for
 * what a *server* receives, so its private fields are set, guarded: where they are not as expected nothing is touched, and false is
 * returned. Call it before the server is bound. (receive-windows.test.ts proves the effect)
 */
export function raiseReceiveWindows(server: grpc.Server): boolean {
  const inside = server as unknown as GrpcServerInside;
  if (typeof inside.commonServerOptions !== "object" || typeof inside._setupHandlers !== "function") return false;
  const options = inside.commonServerOptions;
  options.settings = { ...options.settings, initialWindowSize: receiveWindowBytes };
  // By default a connection whose client cancels more than 33 calls a second for long is ended with a protocol error.
  options.streamResetBurst = cancelledCallsBurstMax;
  options.streamResetRate = cancelledCallsPerSecondMax;
  const setUp = inside._setupHandlers.bind(server);
  inside._setupHandlers = (http2Server, ...rest) => {
    http2Server.on("session", (session: ServerHttp2Session) => {
      if (!session.destroyed) session.setLocalWindowSize(receiveConnectionWindowBytes);
    });
    http2Server.prependListener("stream", (_stream: EventEmitter, headers: Record<string, unknown>) =>
      shortenTimeout(headers),
    );
    setUp(http2Server, ...rest);
  };
  return true;
}

interface GrpcServerInside {
  commonServerOptions?: { settings?: Record<string, unknown>; streamResetBurst?: number; streamResetRate?: number };
  _setupHandlers?: (http2Server: Http2Server, ...rest: unknown[]) => void;
}

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
const longestTimerMs = 2 ** 31 - 1;

/** grpc-js reads a deadline beyond 2^31 ms (24.8 days) as a negative one, and ends the call at once: it is shortened to that. */
function shortenTimeout(headers: Record<string, unknown>): void {
  const match = /^(\d{1,8})([HMSmun])$/.exec(String(headers["grpc-timeout"] ?? ""));
  const ms = Number(match?.[1]) * (unitMs[match?.[2] ?? ""] ?? 0);
  if (ms > longestTimerMs) headers["grpc-timeout"] = `${Math.floor(longestTimerMs / 1000)}S`;
}
