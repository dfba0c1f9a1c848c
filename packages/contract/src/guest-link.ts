/** Numbers of the link between service and guest agent. (docs/design/guest-link.md) */

/** The version that both proofs are bound to. */
export const linkProtocolVersion = 1;
/** The most payload of a DATA frame. */
export const linkDataMaxBytes = 64 * 1024;
/** The most payload of a frame that carries a message. */
export const linkMessageMaxBytes = 4 * 1024 * 1024;
/** The most payload of a handshake frame. */
export const linkHandshakeMaxBytes = 4 * 1024;

/** Connections that have not proved the token, at once. */
export const linkUnauthenticatedMax = 64;
/** Stream connections that one caller makes at once; more wait for their turn, so that it never fills the agent's room for those. */
export const linkDialsMax = 16;
/** Bytes that such a connection may send. */
export const linkUnauthenticatedMaxBytes = 64 * 1024;
/** How long a connection may take to prove the token, however slowly it sends. */
export const linkAuthenticateTimeoutMs = 10_000;
/** Connections that have proved the token, at once. */
export const linkConnectionsMax = 4_096;
/** Calls that one control connection may have open at once. */
export const linkCallsMax = 1_024;
/** Replies that a caller may leave unread on a control connection before it is closed. */
export const linkUnreadRepliesMaxBytes = 16 * 1024 * 1024;
/** Pings that are answered while the caller leaves what was sent before unread. */
export const linkUnreadPongsMax = 1_024;

/** How often the caller pings on a control connection. */
export const linkPingEveryMs = 15_000;
/** Pings that may go unanswered before the peer counts as gone. */
export const linkPingMisses = 3;
/** How long a peer may be silent on its control connection: every ping of the misses. */
export const linkSilenceMaxMs = linkPingEveryMs * linkPingMisses;
/** How long a guest whose pod was seen gone may take to show that it is there all the same. */
export const linkLastSignMs = 5_000;
/** After how long a silence the kernel asks whether the other machine is still there; ten unanswered within 10 s end the connection. */
export const linkKeepAliveMs = 5 * 60_000;
/** After how long without calls and streams a caller closes its connections. */
export const linkIdleCloseMs = 60_000;
/** Authenticated stream connections that a caller keeps ready per pod. */
export const linkSparesMax = 2;
/** How long an ended stream's socket may take to close before it is destroyed. */
export const linkStreamCloseMs = 5_000;
