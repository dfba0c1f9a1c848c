import type { Reason } from "@holdfast/contract";

/**
 * Nothing was sent: no connection, or the agent refused it before any call or stream. Alone among failures it proves
 * that nothing happened in the guest.
 */
export class NothingSent extends Error {
  readonly why: "no-connection" | "name-unresolvable" | "token-refused" | "protocol-mismatch" | "capacity" | "closed";
  constructor(why: NothingSent["why"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "NothingSent";
    this.why = why;
  }
}

/** The connection ended after something was sent: what became of it is not known. */
export class LinkLost extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "LinkLost";
  }
}

/** Nothing was heard of the peer for as long as that may last: with this connection go all others to it. */
export class PeerSilent extends LinkLost {
  /** How long it was silent for certain. */
  readonly silentMs: number;

  constructor(message: string, silentMs: number) {
    super(message);
    this.silentMs = silentMs;
  }
}

/** The peer sent what the protocol does not allow. Ends the connection, and nothing else. */
export class LinkProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "LinkProtocolError";
  }
}

/** An answer of the other side: it understood, and says no. Thrown by handlers, met by callers. */
export class AnsweredError extends Error {
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  constructor(reason: Reason | (string & {}), message: string, metadata: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = "AnsweredError";
    this.reason = reason;
    this.metadata = metadata;
  }
}
