import { HoldfastError } from "@holdfast/errors";
import type { QuiesceOrder } from "@holdfast/workspace";

/** What a quiesce ends with when the service drains before its guest has answered. */
export function quiesceLetGo({ holdMs }: QuiesceOrder): HoldfastError {
  const held = holdMs === undefined ? "" : " It may hold its programs back until the lease ends.";
  return new HoldfastError("QUIESCE_UNCONFIRMED", {
    message: `This process is stopping and let the call go before the guest had answered: whether its programs are at rest is not known.${held} Nothing else was changed. Call again; another process, or this one when it is back, will serve it.`,
    metadata: { why: "service_draining" },
  });
}

/** What a flush ends with likewise. */
export function flushLetGo(): HoldfastError {
  return new HoldfastError("FLUSH_UNCONFIRMED", {
    message:
      "This process is stopping and let the call go before the guest had answered: whether its disk was flushed is not known. Nothing was changed. What programs had fsynced is safe. Call again; another process, or this one when it is back, will serve it.",
    metadata: { why: "service_draining" },
  });
}
