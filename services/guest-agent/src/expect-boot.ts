import { AnsweredError } from "@holdfast/guest-link";

/** Refuses a call that was meant for another agent process; "": it was meant for whichever there is. */
export function expectBoot(expected: string, bootId: string): void {
  if (expected === "" || expected === bootId) return;
  throw new AnsweredError(
    "GUEST_RESTARTED",
    "Nothing was done: the guest's agent is another process than the one this call expected, and knows nothing of its commands and sessions.",
    { expected_boot_id: expected, boot_id: bootId },
  );
}
