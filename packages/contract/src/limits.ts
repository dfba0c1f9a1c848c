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
/** Where clients reach the service when the operator does not say. */
export const listenDefault = "127.0.0.1:50051";
/** Calls that one process carries at once; one more is STREAM_CAPACITY. */
export const callsMax = 20_000;
/** Calls that one connection of a client carries at once; more wait in the client. */
export const callsPerConnectionMax = 4_096;
/** What a client may send on one call before it is read (HTTP/2 flow control). */
export const receiveWindowBytes = 4 * 1024 * 1024;
/** What a client may send on one connection before it is read. */
export const receiveConnectionWindowBytes = 16 * 1024 * 1024;
/** The most violations that an error names; the rest are counted. */
export const violationsNamedMax = 32;
/** The longest message of an error, in characters: trailers must fit what clients accept. */
export const errorMessageMaxLength = 2_048;
/** The longest value in an error's metadata and violations, in characters. */
export const errorValueMaxLength = 256;
/** Calls that a client may cancel at once on one connection before that is taken for an attack and the connection is ended. */
export const cancelledCallsBurstMax = 20_000;
/** Calls that a client may cancel on one connection each second for long. */
export const cancelledCallsPerSecondMax = 2_000;
