import type { ListenAddress } from "../config/service-config.ts";

/** A place where calls come in. */
export interface Listener {
  readonly address: ListenAddress;
  /** Tells whoever asks for its health that it will stop. */
  announceDrain(): void;
  /** Closes: takes no new connection, waits for calls until the signal aborts, then ends what is left. */
  close(signal: AbortSignal): Promise<void>;
}
