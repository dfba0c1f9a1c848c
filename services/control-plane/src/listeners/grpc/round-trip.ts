import type { Http2Session } from "node:http2";

/** Round trips that calls wait for, by connection: one ping under way, and one to follow for whoever came after it was sent. */
const waiting = new WeakMap<Http2Session, (() => void)[]>();

/**
 * Calls back once everything that the peer had sent before it heard of this call has been received: after a ping that is sent from now
 * on has come back. Never on a connection that ends before. Shared, because a session carries no more than ten pings.
 */
export function afterRoundTrip(session: Http2Session, then: () => void): void {
  const queue = waiting.get(session);
  if (queue) {
    queue.push(then);
    return;
  }
  waiting.set(session, []);
  send(session, [then]);
}

function send(session: Http2Session, served: readonly (() => void)[]): void {
  if (session.destroyed) return;
  session.ping((error) => {
    if (error) return;
    const next = waiting.get(session) ?? [];
    if (next.length === 0) waiting.delete(session);
    else {
      waiting.set(session, []);
      send(session, next);
    }
    for (const then of served) then();
  });
}
