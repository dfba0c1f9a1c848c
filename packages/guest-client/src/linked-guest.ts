import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import type { Clock, Deadline } from "@holdfast/async";
import { bootIdOf, type ExecutionId } from "@holdfast/contract";
import { LinkClient } from "@holdfast/guest-link";
import type {
  ExecutionEvent,
  ExecutionWish,
  Guest,
  GuestAddress,
  GuestDialler,
  GuestHealth,
} from "@holdfast/workspace";
import { Execute } from "./execute.ts";
import { guestErrorOf } from "./guest-errors.ts";
import { LinkedFiles } from "./linked-files.ts";

/** Reaches guests over the framed link. */
export function guestDialler(clock: Clock): GuestDialler {
  return { guest: (address) => new LinkedGuest(address, clock) };
}

/** One guest agent, over the framed link. Connections are made at the first call and let go when idle. */
export class LinkedGuest implements Guest {
  readonly address: GuestAddress;
  readonly files: LinkedFiles;
  readonly #clock: Clock;
  readonly #link: LinkClient;
  #liveExecutions = 0;

  constructor(address: GuestAddress, clock: Clock) {
    this.address = address;
    this.#clock = clock;
    this.#link = new LinkClient({ host: address.host, port: address.port, token: address.podUid }, clock);
    this.files = new LinkedFiles(this.#link, clock);
  }

  get liveExecutions(): number {
    return this.#liveExecutions;
  }

  async health(within: Deadline): Promise<GuestHealth> {
    const health = await translated(this.#link.call(AgentService.method.health, {}, { within }));
    const { serving, protocolVersion, features } = health;
    return { serving, protocolVersion, features, bootId: bootIdOf(health.bootId) };
  }

  async probe(within: Deadline): Promise<string> {
    return (await translated(this.#link.call(AgentService.method.probe, {}, { within }))).processStatus;
  }

  async *execute(wish: ExecutionWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent, void, undefined> {
    this.#liveExecutions += 1;
    try {
      yield* new Execute(this.#link, this.#clock, wish, signal).events();
    } finally {
      this.#liveExecutions -= 1;
    }
  }

  /**
   * Ends a command and resolves once nothing of it is left, or at once if it had ended. CANCELLATION_UNCONFIRMED names what
   * survived; a GuestLost or a deadline leaves open what became of it.
   */
  async cancelExecution(id: ExecutionId, within: Deadline): Promise<{ readonly alreadyEnded: boolean }> {
    const request = { executionId: id };
    const { alreadyEnded } = await translated(
      this.#link.call(ExecutionService.method.cancelExecution, request, { within }),
    );
    return { alreadyEnded };
  }

  close(): void {
    this.#link.close();
  }
}

function translated<T>(call: Promise<T>): Promise<T> {
  return call.catch((error) => {
    throw guestErrorOf(error);
  });
}
