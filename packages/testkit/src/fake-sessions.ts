import { type AttachmentId, bootIdOf, type SessionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type {
  GuestSessions,
  GuestTunnel,
  OpenedSession,
  PortWish,
  SessionChunk,
  SessionEvent,
  SessionInfo,
} from "@holdfast/workspace";

interface Named {
  readonly sessionId: SessionId;
  readonly attachmentId?: AttachmentId | undefined;
}

/** The sessions of a guest that knows none. Replace a method to make it know some. */
export class FakeSessions implements GuestSessions {
  async open({ sessionId }: Named): Promise<OpenedSession> {
    throw new HoldfastError("SESSION_CAPACITY", {
      message: `This guest starts no sessions; ${sessionId} was not started.`,
    });
  }

  async *attach({ sessionId }: Named): AsyncGenerator<SessionEvent> {
    throw unknown(sessionId);
  }

  async write({ sessionId }: Named): Promise<{ readonly nextSequence: number }> {
    throw unknown(sessionId);
  }

  async resize({ sessionId }: Named): Promise<void> {
    throw unknown(sessionId);
  }

  async signal({ sessionId }: Named): Promise<void> {
    throw unknown(sessionId);
  }

  async kill({ sessionId }: Named): Promise<SessionInfo> {
    throw unknown(sessionId);
  }

  async read({ sessionId }: Named): Promise<SessionChunk> {
    throw unknown(sessionId);
  }

  list: GuestSessions["list"] = async () => ({ sessions: [], bootId: bootIdOf("boot") });

  async detach({ sessionId }: Named): Promise<void> {
    throw unknown(sessionId);
  }
}

/** A guest in which nobody listens. */
export async function refusePort({ port, host }: PortWish): Promise<GuestTunnel> {
  throw new HoldfastError("PORT_REFUSED", { message: `Nobody listens on ${host}:${port} of this guest.` });
}

function unknown(id: SessionId): HoldfastError {
  return new HoldfastError("SESSION_NOT_FOUND", { message: `This guest knows no session ${id}.` });
}
