import { drainUnaryMs } from "@holdfast/contract";
import type { Listener } from "./listeners/listener.ts";
import type { Admission } from "./rpc/interceptors/admission.ts";

/** How long answers may take to leave once the calls are over. */
const lastWordsMs = 1_000;

/**
 * Ends the serving of calls: NOT_SERVING, new calls refused, streams ended by name at once, unary calls given `drainUnaryMs`. No
 * program is ended and no signal of a call is aborted. Takes at most `drainUnaryMs` and two seconds.
 */
export async function drainCalls(listeners: readonly Listener[], admission: Admission): Promise<void> {
  for (const listener of listeners) listener.announceDrain();
  const idle = admission.drain();
  const grace = AbortSignal.timeout(drainUnaryMs);
  const endUnary = (): void => admission.endUnary();
  grace.addEventListener("abort", endUnary, { once: true });
  await Promise.race([idle, passed(AbortSignal.timeout(drainUnaryMs + lastWordsMs))]);
  grace.removeEventListener("abort", endUnary);
  const end = AbortSignal.timeout(lastWordsMs);
  await Promise.all(listeners.map((listener) => listener.close(end)));
}

function passed(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
