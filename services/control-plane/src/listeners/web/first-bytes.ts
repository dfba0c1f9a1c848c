import type { Socket } from "node:net";

/** What a client of HTTP/2 sends first. (RFC 9113, 3.4) */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** How long a connection may say nothing that tells which protocol it speaks. */
export const firstBytesMs = 10_000;

/**
 * Calls back once it is known which protocol the client speaks, with the socket as if nothing had been read from it. A connection that
 * says nothing in time, or ends before, is destroyed and never reported.
 */
export function awaitProtocol(socket: Socket, found: (protocol: "http1" | "http2") => void): void {
  let seen = Buffer.alloc(0);
  const giveUp = (): void => void socket.destroy();
  const timer = setTimeout(giveUp, firstBytesMs);
  const onData = (bytes: Buffer): void => {
    seen = Buffer.concat([seen, bytes]);
    const protocol = protocolOf(seen);
    if (protocol === undefined) return;
    stop();
    socket.pause();
    socket.unshift(seen);
    found(protocol);
    // An HTTP/2 session takes what was unread in its own time; flowing, it would be lost.
    if (protocol === "http1") socket.resume();
  };
  const stop = (): void => {
    clearTimeout(timer);
    socket.off("data", onData).off("end", giveUp).off("error", giveUp).off("close", stop);
  };
  socket.on("data", onData).once("end", giveUp).once("error", giveUp).once("close", stop);
}

/** Undefined while both are possible. */
function protocolOf(seen: Buffer): "http1" | "http2" | undefined {
  const compared = Math.min(seen.length, preface.length);
  if (!seen.subarray(0, compared).equals(preface.subarray(0, compared))) return "http1";
  return compared === preface.length ? "http2" : undefined;
}
