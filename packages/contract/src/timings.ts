/** How long a start may take when the caller does not say. */
export const readyTimeoutDefaultMs = 5 * 60_000;
/** How long a stop may take when the caller does not say. */
export const stopTimeoutDefaultMs = 2 * 60_000;
/** The longest `ready_timeout` and `stop_timeout`. */
export const startStopTimeoutMaxMs = 60 * 60_000;
/** How long a guest may take to flush when the caller does not say. */
export const flushTimeoutDefaultMs = 10_000;
/** How long a guest may take to end the terminals of this service's callers before a suspend. */
export const sessionReleaseTimeoutMs = 2_000;
/** How long a guest may take to answer a quiesce, over what its scans take. */
export const quiesceAnswerMarginMs = 5_000;
/** How long a guest may take to answer a flush, over what the flush may take. */
export const flushAnswerMarginMs = 2_000;
/** RunCommand's timeout when the caller does not say. */
export const runCommandTimeoutDefaultMs = 5 * 60_000;
/** How long a call waits for a bindable pod of a Running workspace. */
export const bindablePodWaitMs = 10_000;
/** The longest time between two reads of a wait, whatever the watch says. */
export const waitRereadMs = 10_000;
/** How long one request to the cluster may take. */
export const clusterRequestTimeoutMs = 10_000;
/** How long a connection to a guest may take. */
export const guestDialTimeoutMs = 3_000;
/** How long GetWorkspace waits for the guest's health. */
export const guestHealthTimeoutMs = 2_000;
/** How long a guest may take for a call about one file: Stat, MakeDirectory, Move. */
export const fileCallTimeoutMs = 30_000;
/** How long a guest may take for a call about one command, over what the call itself waits for. */
export const executionCallTimeoutMs = 30_000;
/** How long a signal to a command waits for the input that its client sent before it. A program that reads nothing does not hold it up. */
export const signalAfterInputMs = 250;
/** How long a client that leaves a command waits for the input that it sent before to be taken. */
export const detachAfterInputMs = 5_000;
/** How long a guest may take over input that a program does not read, before it is asked again. */
export const stdinTryMs = 60_000;
/** How long a guest may take for a call about one session, over what the call itself waits for. */
export const sessionCallTimeoutMs = 30_000;
/** How long a terminal's stream may go on after its input was refused: what the program wrote, and its end, come first. */
export const refusedInputGraceMs = 5_000;
/** How long a lost link to the same guest is retried. */
export const reattachWindowMs = 30_000;
/** The least time between two looks for the pod of a guest whose streams wait to reach it again. */
export const unreachedLookEveryMs = 4_000;
/** How long the service may take from SIGTERM to exit. */
export const drainGraceMs = 15_000;
/** How long unary calls may go on after SIGTERM before they are let go. Streams are let go at once. */
export const drainUnaryMs = 5_000;
/** How often an idle connection of a client is pinged. */
export const clientPingEveryMs = 30_000;
/** How long its answer may take before the connection counts as lost. */
export const clientPingTimeoutMs = 20_000;

/** How long the shared watch of workspaces stands after its last watcher left. */
export const watchLingerMs = 30_000;
/** How long the list may take that the shared watch begins with. */
export const watchListTimeoutMs = 60_000;
/** How long bookmarks are gathered before the shared watch goes back to the oldest of them. */
export const rewindGatherMs = 50;

/** How the watches of the cluster are kept. (docs/design/kubernetes-client.md) */
export const watchTimings = {
  /** The server is asked to end a watch after at most this long, so that no connection grows old. */
  rotateSeconds: 300,
  /** How long after that a watch may still stand before it is ended here. */
  rotateGraceMs: 30_000,
  /** How long a watch may be silent. API servers send a bookmark about every minute. */
  silenceMaxMs: 90_000,
  /** A watch that stood this long and broke off is resumed at once. */
  steadyAfterMs: 5_000,
  /** The random wait before it is resumed, so that a thousand of them do not come together. */
  resumeWithinMs: 250,
  /** The least wait after a watch that did not stand. Each try is a list and a watch, of two kinds: two requests a second. */
  spacingMs: 2_000,
  /** The longest wait between tries. */
  backoffMaxMs: 5_000,
  /** The longest Retry-After that is honoured. */
  retryAfterMaxMs: 30_000,
  /** When the kernel probes a silent watch's peer. */
  tcpKeepAliveMs: 30_000,
} as const;
