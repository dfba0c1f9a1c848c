import type { Clock } from "@holdfast/async";
import { LeaveRunning } from "../ports/executions.ts";
import type { ExecutionEvent, ExecutionWish, Guest } from "../ports/guest.ts";
import { type CommandInput, Feeding, isClientsFault } from "./feeding.ts";

export type { CommandInput } from "./feeding.ts";

export interface Interactive {
  /** That the command is started in; its input goes there, too. */
  readonly guest: Guest;
  readonly wish: ExecutionWish;
  /** Input that precedes all other. */
  readonly first: Uint8Array | undefined;
  readonly input: AsyncIterable<CommandInput>;
  readonly clock: Clock;
}

/**
 * A command's output, while its client's input, signals and detach are carried out beside it. Ends with `exited`, or at the client's
 * detach. Input that is refused by the guest ends the call and not the command; a request that is wrong is the client's end.
 */
export async function* interactive(
  { guest, wish, first, input, clock }: Interactive,
  signal: AbortSignal,
): AsyncGenerator<ExecutionEvent, void> {
  const output = new AbortController();
  const clientsEnd = (): void => output.abort(signal.reason);
  if (signal.aborted) clientsEnd();
  signal.addEventListener("abort", clientsEnd, { once: true });
  let feeding: Feeding | undefined;
  try {
    for await (const event of guest.execute(wish, output.signal)) {
      yield event;
      if (event.t !== "started" || feeding !== undefined) continue;
      feeding = new Feeding({ executions: guest.executions, started: event, clock });
      feeding.run(first, input).then(
        (end) => end === "detached" && output.abort(new LeaveRunning()),
        // Not the client's end, unless its request was at fault: then the command is as it wished for such an end.
        (thrown: unknown) => output.abort(isClientsFault(thrown) ? thrown : new LeaveRunning()),
      );
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (feeding?.failure) throw feeding.failure.thrown;
    if (feeding?.isDetached) return;
    throw error;
  } finally {
    signal.removeEventListener("abort", clientsEnd);
    feeding?.end();
  }
}
