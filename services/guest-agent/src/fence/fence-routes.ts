import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { AnsweredError, type Router } from "@holdfast/guest-link";
import type { Fence } from "./fence.ts";

/** Serves the raise of the epoch. */
export function routeFence(router: Router, fence: Fence): void {
  router.unary(AgentService.method.fence, async ({ epoch }, { signal }) => {
    if (epoch > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new AnsweredError("INVALID_REQUEST", `The epoch was not raised: ${epoch} is beyond 2^53 - 1.`, {
        field: "epoch",
      });
    }
    return { epoch: await fence.raise(epoch, signal) };
  });
}
