import { type HolderEpoch, holderEpochFrom } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { SandboxReading } from "../ports/cluster.ts";
import type { Fencing } from "./fencing.ts";

/** The stored epoch: absent reads as 0, anything but a decimal safe integer is unreadable and never 0. */
export function holderEpochOf(text: string | undefined): HolderEpoch | "unreadable" {
  if (text === undefined) return holderEpochFrom(0);
  if (!/^(0|[1-9][0-9]*)$/.test(text)) return "unreadable";
  const value = Number(text);
  return Number.isSafeInteger(value) ? holderEpochFrom(value) : "unreadable";
}

/** The stored epoch as a number. Throws HOLDER_EPOCH_UNREADABLE. */
export function storedEpoch(reading: SandboxReading): HolderEpoch {
  const stored = holderEpochOf(reading.stamps.holderEpoch);
  if (stored !== "unreadable") return stored;
  const text = reading.stamps.holderEpoch ?? "";
  throw new HoldfastError("HOLDER_EPOCH_UNREADABLE", {
    message: `Nothing was sent: the holder epoch stored on ${reading.name} is not a number that can be read (${JSON.stringify(text)}). It is never overwritten; repair the annotation.`,
    metadata: { stored: text },
  });
}

/**
 * L21: what a call may write on the object of this reading. Returns the epoch to store with the write, undefined where the annotation is
 * left as it is; throws HOLDER_EPOCH_SUPERSEDED, HOLDER_EPOCH_REQUIRED or HOLDER_EPOCH_UNREADABLE. Asked anew on every reading.
 */
export function epochToStore(reading: SandboxReading, fencing: Fencing): HolderEpoch | undefined {
  const stored = storedEpoch(reading);
  switch (fencing.t) {
    case "none":
      if (stored > 0) throw epochRequired(reading.name, stored);
      return undefined;
    case "ignore_fence":
      return undefined;
    case "take_over":
      return next(reading.name, stored);
    case "epoch": {
      const { epoch } = fencing;
      if (stored > epoch) throw epochSuperseded(reading.name, epoch, stored);
      // A present 0 is stored too: from then on the workspace is one that holders fence.
      return reading.stamps.holderEpoch === String(epoch) ? undefined : epoch;
    }
  }
}

/** A holder with a higher number has taken over. */
export function epochSuperseded(
  name: string,
  mine: HolderEpoch,
  stored: HolderEpoch,
  what = "Nothing was sent",
): HoldfastError {
  return new HoldfastError("HOLDER_EPOCH_SUPERSEDED", {
    message: `${what}: ${name} is held at epoch ${stored}, and this call carries ${mine}. Re-read your holder record; take_over takes the workspace back.`,
    metadata: { mine: String(mine), stored: String(stored) },
  });
}

/** A call without an epoch on a workspace that is fenced. */
export function epochRequired(name: string, stored: HolderEpoch, what = "Nothing was sent"): HoldfastError {
  return new HoldfastError("HOLDER_EPOCH_REQUIRED", {
    message: `${what}: ${name} is held by a fenced holder at epoch ${stored}, and this call carries no epoch. Call with the holder's epoch, or take the workspace over.`,
    metadata: { stored: String(stored) },
  });
}

/** A call that does not take over carries a number that nobody has taken. */
export function epochNotTaken(name: string, mine: HolderEpoch, stored: HolderEpoch): HoldfastError {
  return new HoldfastError("HOLDER_EPOCH_NOT_TAKEN", {
    message: `Nothing was done: ${name} is held at epoch ${stored}, and this call carries ${mine}, which has not been taken. Open or resume the workspace with it first.`,
    metadata: { mine: String(mine), stored: String(stored) },
  });
}

/** What a POST stores: nothing stands that could be higher. */
export function epochOfNew(fencing: Fencing): HolderEpoch | undefined {
  if (fencing.t === "epoch") return fencing.epoch;
  return fencing.t === "take_over" ? holderEpochFrom(1) : undefined;
}

function next(name: string, stored: HolderEpoch): HolderEpoch {
  if (stored < Number.MAX_SAFE_INTEGER) return holderEpochFrom(stored + 1);
  const description = `the stored epoch ${stored} is the highest there is: call with that number`;
  throw new HoldfastError("INVALID_REQUEST", {
    message: `Nothing was sent: ${name} cannot be taken over, ${description}.`,
    metadata: { stored: String(stored) },
    violations: [{ field: "take_over", description }],
  });
}
