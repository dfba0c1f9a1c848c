import type { ServerHttp2Session } from "node:http2";
import { clientPingEveryMs, clientPingTimeoutMs } from "@holdfast/contract";

/** Pings the client of a session, and ends the session when it does not answer. Stops with the session. */
export function keepAlive(session: ServerHttp2Session): void {
  let unanswered: NodeJS.Timeout | undefined;
  const ping = (): void => {
    if (unanswered !== undefined) return;
    const sent = session.ping(() => {
      clearTimeout(unanswered);
      unanswered = undefined;
    });
    if (sent) unanswered = setTimeout(() => session.destroy(), clientPingTimeoutMs);
  };
  const every = setInterval(ping, clientPingEveryMs);
  session.once("close", () => {
    clearInterval(every);
    clearTimeout(unanswered);
  });
}
