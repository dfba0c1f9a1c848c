import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type * as grpc from "@grpc/grpc-js";
import { receiveConnectionWindowBytes, receiveWindowBytes } from "@holdfast/contract";
import { cancelLimits } from "../cancel-limits.ts";
import { endAtReset } from "../end-at-reset.ts";
import { shortenTimeout } from "../long-timeout.ts";

/**
 * Raises what the server lets a client send before it has been read: 64 KiB per round trip without it. grpc-js has no option for
 * what a *server* receives, so its private fields are set, guarded: where they are not as expected nothing is touched, and false is
 * returned. Call it before the server is bound. (receive-windows.test.ts proves the effect)
 */
export function raiseReceiveWindows(server: grpc.Server): boolean {
  const inside = server as unknown as GrpcServerInside;
  if (typeof inside.commonServerOptions !== "object" || typeof inside._setupHandlers !== "function") return false;
  const options = inside.commonServerOptions;
  options.settings = { ...options.settings, initialWindowSize: receiveWindowBytes };
  Object.assign(options, cancelLimits);
  const setUp = inside._setupHandlers.bind(server);
  inside._setupHandlers = (http2Server, ...rest) => {
    http2Server.on("session", (session: ServerHttp2Session) => {
      if (!session.destroyed) session.setLocalWindowSize(receiveConnectionWindowBytes);
    });
    http2Server.prependListener("stream", (stream: ServerHttp2Stream, headers: Record<string, unknown>) => {
      shortenTimeout(headers);
      endAtReset(stream);
    });
    setUp(http2Server, ...rest);
  };
  return true;
}

interface GrpcServerInside {
  commonServerOptions?: { settings?: Record<string, unknown> };
  _setupHandlers?: (http2Server: Http2Server, ...rest: unknown[]) => void;
}
