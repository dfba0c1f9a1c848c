/** The largest epoch: 2^53 − 1. */
export const epochMax = Number.MAX_SAFE_INTEGER;
/** The most output in one message to a client. */
export const outputChunkMaxBytes = 32 * 1024;
/** The most standard input of one start. */
export const stdinMaxBytes = 3 * 1024 * 1024;
/** Standard input of one ExecuteInteractive that waits for its program; more waits in the client. */
export const stdinWaitingMaxBytes = 256 * 1024;
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
/** Where browsers and curl reach it when the operator does not say. */
export const webListenDefault = "127.0.0.1:8080";
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
/** The most content of one PutFile, and of one message of WriteFile. */
export const putFileMaxBytes = 1024 * 1024;
/** The most bytes in one message of ReadFile. */
export const fileChunkMaxBytes = 64 * 1024;
/** The most files in one message of a listing. */
export const fileBatchMax = 500;
/** The longest path, in bytes. */
export const pathMaxBytes = 4096;
/** How many entries one walk may look at. */
export const walkVisitedMax = 1_000_000;
/** Events of one workspace that a listener may leave unread; one more and the oldest gives way. */
export const workspaceEventQueueMax = 256;
/** Events of one workspace that are kept for those who watch it, and for who comes back with a cursor. */
export const workspaceWatchEventsMax = 256;
/** Changes that a WatchWorkspaces stream may leave unread; one more and it hears everything anew. */
export const watchQueueMax = 1_000;
/** Changes that are kept, so that a watcher who comes back with a bookmark costs the cluster nothing. */
export const changeLogMax = 4_096;
/** Workspaces of a namespace that can be watched. */
export const watchedWorkspacesMax = 100_000;
/** Objects in one page of the list that a watch begins with. */
export const watchListPageSize = 500;
/** Workspaces that are looked at together after a watch missed what happened. */
export const looksAtOnceMax = 8;
/** Held workspaces from which on a watch that missed something is made up for by a list instead of one read each. */
export const readsInsteadOfListMax = 32;
