/** Where a connection in the guest leads. */
export interface PortWish {
  /** 1 to 65535, not the agent's own. */
  readonly port: number;
  readonly host: "127.0.0.1" | "::1";
}

/** One connection to a server in the guest. Each direction ends by itself. */
export interface GuestTunnel {
  /**
   * What the program sends, as it comes; complete when it has closed its side. Throws when the connection broke: a reset is never
   * taken for an end.
   */
  readonly received: AsyncIterable<Uint8Array>;
  /**
   * Resolves once both directions have ended in order, and the guest's kernel has all that was sent. Rejects with what broke: also where
   * the program had closed its side before, and `received` is complete. Need not be watched.
   */
  readonly ended: Promise<void>;
  /** Resolves when more may be sent. Rejects once the connection is over. */
  send(data: Uint8Array): Promise<void>;
  /** Nothing more is sent. What the program sends still comes. */
  closeSending(): void;
  /** Ends both directions at once. */
  destroy(): void;
}
