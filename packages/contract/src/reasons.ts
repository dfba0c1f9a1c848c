/** How an error travels: names of gRPC status codes. */
export type StatusName =
  | "INVALID_ARGUMENT"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "DEADLINE_EXCEEDED"
  | "UNKNOWN"
  | "UNAVAILABLE"
  | "RESOURCE_EXHAUSTED"
  | "OUT_OF_RANGE"
  | "PERMISSION_DENIED"
  | "UNIMPLEMENTED"
  | "INTERNAL";

/**
 * Every reason that a caller can meet, and the status it travels as. The one catalogue: nobody picks a status at a throw.
 */
export const reasons = {
  WORKSPACE_SUSPENDED: "FAILED_PRECONDITION",
  WORKSPACE_NOT_READY: "FAILED_PRECONDITION",
  WORKSPACE_DELETING: "FAILED_PRECONDITION",
  AGENT_RETIRING: "FAILED_PRECONDITION",
  GUEST_TOKEN_REFUSED: "FAILED_PRECONDITION",
  GUEST_FEATURE_MISSING: "FAILED_PRECONDITION",
  GUEST_PROTOCOL_MISMATCH: "FAILED_PRECONDITION",
  /** Another agent process than the one that was expected; nothing was started. */
  GUEST_RESTARTED: "FAILED_PRECONDITION",
  WORKSPACE_MISMATCH: "FAILED_PRECONDITION",
  WORKSPACE_DISK_UNUSABLE: "FAILED_PRECONDITION",
  GUEST_PRIVILEGED: "FAILED_PRECONDITION",
  INGRESS_UNVERIFIED: "FAILED_PRECONDITION",
  AGENT_ADDRESS_UNRESOLVABLE: "FAILED_PRECONDITION",
  HOLDER_EPOCH_UNREADABLE: "FAILED_PRECONDITION",
  HOLDER_EPOCH_REQUIRED: "FAILED_PRECONDITION",
  /** A caller with a higher number has taken over. */
  HOLDER_EPOCH_SUPERSEDED: "FAILED_PRECONDITION",
  /** A number higher than the stored one on a call that does not take over. */
  HOLDER_EPOCH_NOT_TAKEN: "FAILED_PRECONDITION",
  /** The newer attachment of a terminal ended this one. */
  ATTACHMENT_DISPLACED: "FAILED_PRECONDITION",
  OUTPUT_NOT_RETAINED: "FAILED_PRECONDITION",
  QUIESCE_UNCONFIRMED: "ABORTED",
  FLUSH_UNCONFIRMED: "ABORTED",
  /** A program broke its connection; never taken for the end of what it sent. */
  PORT_RESET: "ABORTED",
  SUSPEND_OVERTAKEN: "ABORTED",
  WORKSPACE_REPLACED: "ABORTED",
  SUSPEND_UNCONFIRMED: "DEADLINE_EXCEEDED",
  DELETE_UNCONFIRMED: "DEADLINE_EXCEEDED",
  START_TIMEOUT: "DEADLINE_EXCEEDED",
  /** The outcome is not known; no client may retry by itself. */
  CANCELLATION_UNCONFIRMED: "UNKNOWN",
  GUEST_GONE: "UNKNOWN",
  EXECUTION_DETACHED: "UNKNOWN",
  SESSION_OUTCOME_UNKNOWN: "UNKNOWN",
  /** A change of a file was sent and not answered: the old state or the new one stands, never a mixture. */
  FILE_OUTCOME_UNKNOWN: "UNKNOWN",
  /** The link to a terminal was lost and not found again in time; attach again at the offset. The program goes on. */
  SESSION_DETACHED: "UNAVAILABLE",
  AGENT_UNREACHABLE: "UNAVAILABLE",
  CLUSTER_UNAVAILABLE: "UNAVAILABLE",
  SERVICE_DRAINING: "UNAVAILABLE",
  /** The file is not what the caller took it for, or moved while it was read. */
  FILE_CHANGED: "FAILED_PRECONDITION",
  NOT_REGULAR_FILE: "FAILED_PRECONDITION",
  NOT_DIRECTORY: "FAILED_PRECONDITION",
  DIRECTORY_NOT_EMPTY: "FAILED_PRECONDITION",
  FILE_NOT_FOUND: "NOT_FOUND",
  FILE_EXISTS: "ALREADY_EXISTS",
  DISK_FULL: "RESOURCE_EXHAUSTED",
  /** A walk looked at as many entries as it may: its list is not whole. */
  WALK_LIMIT: "RESOURCE_EXHAUSTED",
  /** The kernel's limit of watches or watchers. */
  WATCH_LIMIT: "RESOURCE_EXHAUSTED",
  WORKSPACE_NOT_FOUND: "NOT_FOUND",
  EXECUTION_NOT_FOUND: "NOT_FOUND",
  EXECUTION_LOST: "NOT_FOUND",
  SESSION_NOT_FOUND: "NOT_FOUND",
  /** A former agent process of this pod had it: its program is gone, or never began. */
  SESSION_LOST: "NOT_FOUND",
  ATTACHMENT_NOT_FOUND: "NOT_FOUND",
  EXECUTION_EXISTS: "ALREADY_EXISTS",
  SESSION_EXISTS: "ALREADY_EXISTS",
  WORKSPACE_EXISTS: "ALREADY_EXISTS",
  EXECUTION_CAPACITY: "RESOURCE_EXHAUSTED",
  SESSION_CAPACITY: "RESOURCE_EXHAUSTED",
  STREAM_CAPACITY: "RESOURCE_EXHAUSTED",
  WORKSPACE_CAPACITY: "RESOURCE_EXHAUSTED",
  MESSAGE_TOO_LARGE: "RESOURCE_EXHAUSTED",
  OFFSET_OUT_OF_RANGE: "OUT_OF_RANGE",
  INPUT_OUT_OF_ORDER: "OUT_OF_RANGE",
  PATH_OUTSIDE_WORKSPACE: "PERMISSION_DENIED",
  PORT_REFUSED: "PERMISSION_DENIED",
  /** The guest's user may not, or the disk is mounted read-only. */
  FILE_ACCESS_DENIED: "PERMISSION_DENIED",
  INVALID_REQUEST: "INVALID_ARGUMENT",
  PAGE_TOKEN_EXPIRED: "INVALID_ARGUMENT",
  /** A declared field that this release refuses when set, never ignores. */
  FIELD_NOT_SERVED: "UNIMPLEMENTED",
  /** A call that streams both ways, over a connection that cannot carry it. */
  STREAM_NEEDS_HTTP2: "UNIMPLEMENTED",
  /** Names the verb that the service's Role lacks. */
  CLUSTER_FORBIDDEN: "INTERNAL",
  /** Carries the server's words. */
  CLUSTER_WRITE_REFUSED: "INTERNAL",
  /** A defect of the service; the log has the rest. */
  INTERNAL_ERROR: "INTERNAL",
} as const satisfies Record<string, StatusName>;

export type Reason = keyof typeof reasons;

/** How a reason travels on a call that only follows what runs: who makes it again by himself changes nothing. */
export const statusOnAttach: Partial<Record<Reason, StatusName>> = { EXECUTION_DETACHED: "UNAVAILABLE" };

/** Reasons where trying again later may help, and after how long. */
export const retryAfterMs: Partial<Record<Reason, number>> = {
  WORKSPACE_NOT_READY: 1_000,
  AGENT_UNREACHABLE: 1_000,
  CLUSTER_UNAVAILABLE: 2_000,
  SERVICE_DRAINING: 1_000,
  STREAM_CAPACITY: 1_000,
};

/** The domain of every `google.rpc.ErrorInfo`. */
export const errorDomain = "holdfast";
