import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { type Clock, Deadline, pause } from "@holdfast/async";
import { cancelAskAgainMs, type ExecutionId } from "@holdfast/contract";
import { AnsweredError, type GuestLink } from "@holdfast/guest-link";

const askEveryMs = 1_000;

/**
 * Ends a command whose client has gone while there was no stream to say it on. Asks again until the guest answers, for a bounded
 * time; a guest that hears none of it ends the command itself, as orphaned.
 */
export async function cancelUnheard(link: GuestLink, clock: Clock, id: ExecutionId, bootId: string): Promise<void> {
  using within = new Deadline(clock, cancelAskAgainMs);
  while (!within.expired) {
    try {
      const request = { executionId: id, expectedBootId: bootId };
      await link.call(ExecutionService.method.cancelExecution, request, { within });
      return;
    } catch (error) {
      if (error instanceof AnsweredError) return; // It knows, or knows nothing of it; either is the guest's last word.
      await pause(clock, askEveryMs, within.signal).catch(() => undefined); // The time is over, which ends the loop.
    }
  }
}
