import { type HolderEpoch, holderEpochFrom, holderEpochHeader } from "@holdfast/contract";
import type { StartFencing, StopFencing } from "@holdfast/workspace";
import type { CallContext } from "./call-context.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";

/** What of a call says whose word it is: its metadata, and for the log who calls. */
export type Caller = Pick<CallContext, "header" | "peer">;

const inMetadata = `metadata ${holderEpochHeader}`;

/** The epoch that metadata gives each call of a client (L20). Throws INVALID_REQUEST for anything but one such number. */
export function epochOfMetadata(caller: Caller): HolderEpoch | undefined {
  const text = caller.header(holderEpochHeader);
  if (text === undefined) return undefined;
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return holderEpochFrom(value);
  throw invalidRequest([{ field: inMetadata, description: "must be one whole number from 0 to 2^53 − 1, in decimal" }]);
}

/** The call's epoch: the field, or metadata in its place. */
export function parseEpoch(field: bigint | undefined, caller: Caller): HolderEpoch | undefined {
  const given = epochOfMetadata(caller);
  if (field === undefined) return given;
  const epoch = holderEpochFrom(Number(field)); // The proto's own rule has bounded it.
  if (given === undefined || given === epoch) return epoch;
  throw invalidRequest([{ field: "epoch", description: `is ${epoch}, and ${inMetadata} is ${given}` }]);
}

interface StartRequest {
  readonly fencing:
    | { readonly case: "epoch"; readonly value: bigint }
    | { readonly case: "takeOver"; readonly value: boolean }
    | { readonly case: undefined; readonly value?: undefined };
}

/** Whose word a start is. A `take_over` that is false takes nothing over. */
export function parseStartFencing({ fencing }: StartRequest, caller: Caller): StartFencing {
  const epoch = parseEpoch(fencing.case === "epoch" ? fencing.value : undefined, caller);
  if (fencing.case === "takeOver" && fencing.value) {
    if (epoch === undefined) return { t: "take_over" };
    throw invalidRequest([{ field: "take_over", description: `cannot be set together with ${inMetadata}` }]);
  }
  return epoch === undefined ? { t: "none" } : { t: "epoch", epoch };
}

interface StopRequest {
  readonly epoch?: bigint | undefined;
  readonly ignoreFence: boolean;
}

/** Whose word a stop is. */
export function parseStopFencing(request: StopRequest, caller: Caller): StopFencing {
  const epoch = parseEpoch(request.epoch, caller);
  if (request.ignoreFence) {
    if (epoch === undefined) return { t: "ignore_fence", by: caller.peer };
    const other = request.epoch === undefined ? inMetadata : "epoch";
    throw invalidRequest([{ field: "ignore_fence", description: `cannot be set together with ${other}` }]);
  }
  return epoch === undefined ? { t: "none" } : { t: "epoch", epoch };
}
