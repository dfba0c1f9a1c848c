/** One field-level cause of a refusal, as the real server lists them. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** The `Status` object of the Kubernetes API: the body of every refusal. */
export interface StatusBody {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: { readonly continue?: string; readonly resourceVersion?: string };
  readonly status: "Success" | "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code: number;
}

/** A refusal by the API server, carrying the `Status` body that the real one would send. */
export class ApiStatusError extends Error {
  readonly status: StatusBody;

  constructor(status: StatusBody) {
    super(status.message ?? status.reason ?? `status ${status.code}`);
    this.name = "ApiStatusError";
    this.status = status;
  }

  get code(): number {
    return this.status.code;
  }

  get reason(): string {
    return this.status.reason ?? "";
  }
}

/** Tells whether a thrown value is a refusal with this HTTP code. */
export function isApiStatus(error: unknown, code: number): error is ApiStatusError {
  return error instanceof ApiStatusError && error.code === code;
}

/**
 * Tells whether a patch that named a uid was refused because the object is gone (404) or its name is another's by now
 * (422: the patch would change the uid). A 409 is neither: the patch met other writes and may be sent again.
 */
export function isOfAnother(error: unknown): boolean {
  if (isApiStatus(error, 404)) return true;
  return (
    isApiStatus(error, 422) && error.status.details?.causes?.some((cause) => cause.field === "metadata.uid") === true
  );
}
