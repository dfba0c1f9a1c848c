/** How long a start may take when the caller does not say. */
export const readyTimeoutDefaultMs = 5 * 60_000;
/** How long a stop may take when the caller does not say. */
export const stopTimeoutDefaultMs = 2 * 60_000;
/** The longest `ready_timeout` and `stop_timeout`. */
export const startStopTimeoutMaxMs = 60 * 60_000;
/** How long a guest may take to flush when the caller does not say. */
export const flushTimeoutDefaultMs = 10_000;
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
/** How long a lost link to the same guest is retried. */
export const reattachWindowMs = 30_000;
/** How long the service may take from SIGTERM to exit. */
export const drainGraceMs = 15_000;
/** How long unary calls may go on after SIGTERM before they are let go. Streams are let go at once. */
export const drainUnaryMs = 5_000;
/** How often an idle connection of a client is pinged. */
export const clientPingEveryMs = 30_000;
/** How long its answer may take before the connection counts as lost. */
export const clientPingTimeoutMs = 20_000;
