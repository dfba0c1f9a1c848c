import { HoldfastError } from "@holdfast/errors";
import type { SandboxReading } from "../ports/cluster.ts";

/** The stored epoch: absent reads as 0, anything but a decimal safe integer is unreadable and never 0. */
export function holderEpochOf(text: string | undefined): number | "unreadable" {
  if (text === undefined) return 0;
  if (!/^(0|[1-9][0-9]*)$/.test(text)) return "unreadable";
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : "unreadable";
}

/** Calls carry no epoch in this release, so a workspace that another tool fenced above 0 is left alone (L21). */
export function assertNotFenced(reading: SandboxReading): void {
  const stored = holderEpochOf(reading.stamps.holderEpoch);
  if (stored === 0) return;
  const text = reading.stamps.holderEpoch ?? "";
  if (stored === "unreadable") {
    throw new HoldfastError("HOLDER_EPOCH_UNREADABLE", {
      message: `Nothing was sent: the holder epoch stored on ${reading.name} is not a number that can be read (${JSON.stringify(text)}). It is never overwritten; repair the annotation.`,
      metadata: { stored: text },
    });
  }
  throw new HoldfastError("HOLDER_EPOCH_REQUIRED", {
    message: `Nothing was sent: ${reading.name} is held by a fenced holder at epoch ${text}, and this call carries no epoch. Use the tool that holds it.`,
    metadata: { stored: text },
  });
}
