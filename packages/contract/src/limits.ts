/** The largest epoch: 2^53 − 1. */
export const epochMax = Number.MAX_SAFE_INTEGER;
/** The most output in one message to a client. */
export const outputChunkMaxBytes = 32 * 1024;
/** The most standard input of one start. */
export const stdinMaxBytes = 3 * 1024 * 1024;
/** RunCommand's cap on each of standard output and standard error. */
export const runCommandOutputMaxBytes = 1024 * 1024;
/** The largest message that a client may send. */
export const requestMaxBytes = 4 * 1024 * 1024;
/** ListWorkspaces' page size when the caller does not say. */
export const pageSizeDefault = 100;
/** ListWorkspaces' largest page size. */
export const pageSizeMax = 1000;
/** Handles that one process holds at most. */
export const handlesMax = 20_000;
