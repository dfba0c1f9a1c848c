import { type Reason, reasons, type StatusName, statusOnAttach } from "@holdfast/contract";

export interface HoldfastErrorInit {
  /** What happened, what was *not* changed, and what to do. */
  readonly message: string;
  /** The numbers and names the reason is about. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Every violation of a request, for INVALID_REQUEST. */
  readonly violations?: readonly FieldViolation[];
  /** Of a call that only followed what runs. */
  readonly onAttach?: boolean;
  readonly cause?: unknown;
}

export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/** An error that a caller can act on. Its status comes from the catalogue. */
export class HoldfastError extends Error {
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[];
  readonly onAttach: boolean;

  constructor(reason: Reason, init: HoldfastErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.name = "HoldfastError";
    this.reason = reason;
    this.metadata = init.metadata ?? {};
    this.violations = init.violations ?? [];
    this.onAttach = init.onAttach ?? false;
  }

  /** The gRPC status that it travels as. */
  get status(): StatusName {
    return (this.onAttach ? statusOnAttach[this.reason] : undefined) ?? reasons[this.reason];
  }

  /** The same error with more metadata; what it says already is kept. */
  withMetadata(more: Readonly<Record<string, string>>): HoldfastError {
    return new HoldfastError(this.reason, {
      message: this.message,
      metadata: { ...more, ...this.metadata },
      violations: this.violations,
      onAttach: this.onAttach,
      cause: this.cause,
    });
  }
}

/** True for an error with this reason. */
export function hasReason(error: unknown, ...wanted: readonly Reason[]): error is HoldfastError {
  return error instanceof HoldfastError && wanted.includes(error.reason);
}
