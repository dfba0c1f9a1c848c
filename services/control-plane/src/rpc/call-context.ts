import type { HoldfastError } from "@holdfast/errors";

/** What a listener knows of a call, in no protocol's words. */
export interface CallContext {
  /** Aborts at the client's end: it cancelled, went away, or its deadline passed. Never at a drain of the service. */
  readonly signal: AbortSignal;
  /** Until when the client waits; undefined: it does not say. */
  readonly deadline: Date | undefined;
  /** A request header, by its lower-case name; several of one name are joined by ", ". Binary headers are not here. */
  header(name: string): string | undefined;
  /** The client's address, for the log. */
  readonly peer: string;
  /** Random per call; in the log, and in errors that the log explains. */
  readonly requestId: string;
}

/** What a handler is given: the call, and its part in a drain. */
export interface HandlerContext extends CallContext {
  /**
   * Says what the call ends with when the service drains while it runs. Asked at that moment, at most once.
   * Without it: SERVICE_DRAINING. The handler's work is let go, not aborted: a drain is not the client's end.
   */
  endsInDrainWith(describe: () => HoldfastError): void;
}

/** Why a call's signal aborts. */
export class ClientEndedCall extends Error {
  constructor() {
    super("the client cancelled, went away, or its deadline passed");
    this.name = "AbortError";
  }
}
