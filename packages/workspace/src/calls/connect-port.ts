import type { HolderEpoch } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { Guest } from "../ports/guest.ts";
import type { GuestTunnel, PortWish } from "../ports/tunnel.ts";
import type { Handle } from "../state/handle.ts";
import { callGuest } from "./guest-call.ts";

/** What a tunnel tells: that it stands, what the program sends, and that it sends nothing more. */
export type TunnelEvent =
  | { readonly t: "connected" }
  | { readonly t: "data"; readonly data: Uint8Array }
  | { readonly t: "closed" };

/**
 * A connection to a server in the guest. `outgoing` is pulled once it stands, and its end is the client's half-close. Completes when both
 * sides were closed in order; whatever else ends it is thrown, and a reset is never taken for an end.
 */
export async function* connectPort(
  ws: Handle,
  wish: PortWish,
  epoch: HolderEpoch | undefined,
  outgoing: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<TunnelEvent, void> {
  const open = (guest: Guest): AsyncGenerator<TunnelEvent, void> => through(guest, wish, outgoing, signal);
  const lost = (cause: Error): HoldfastError =>
    new HoldfastError("PORT_RESET", {
      message: `The connection to port ${wish.port} of workspace ${ws.id} was lost with the link to its guest (${cause.message}). What was delivered came whole and in order; what the program took of what was sent is not known. Connect again.`,
      metadata: { port: String(wish.port), cause: "link_lost" },
      cause,
    });
  const claim = { changes: true, epoch } as const;
  yield* callGuest(ws, { feature: "ports", claim, holds: "ports", open, lost }, signal);
}

async function* through(
  guest: Guest,
  wish: PortWish,
  outgoing: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<TunnelEvent, void> {
  const end = new AbortController();
  const onAbort = (): void => end.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const tunnel = await guest.connectPort(wish, end.signal);
    yield { t: "connected" };
    const sent = send(tunnel, outgoing);
    sent.catch((why: unknown) => end.abort(why)); // The reader hears of it at once, and the program sees a reset.
    for await (const data of tunnel.received) yield { t: "data", data };
    yield { t: "closed" };
    await Promise.race([sent, tunnel.ended]);
    await tunnel.ended;
  } finally {
    signal.removeEventListener("abort", onAbort);
    end.abort(new Error("the tunnel is over"));
  }
}

async function send(tunnel: GuestTunnel, outgoing: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const data of outgoing) await tunnel.send(data);
  tunnel.closeSending();
}
