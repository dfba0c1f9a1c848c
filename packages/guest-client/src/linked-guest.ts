import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { DiskService } from "@holdfast/api/holdfast/guest/v1/disk_pb";
import type { Clock, Deadline } from "@holdfast/async";
import { bootIdOf, type HolderEpoch } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";
import { type GuestLink, LinkClient } from "@holdfast/guest-link";
import type {
  ExecutionEvent,
  ExecutionWish,
  Guest,
  GuestAddress,
  GuestDialler,
  GuestHealth,
  GuestTunnel,
  PortWish,
  QuiesceOrder,
  QuiesceResult,
} from "@holdfast/workspace";
import { executed } from "./execute.ts";
import { FollowedCommand } from "./follow-command.ts";
import type { FollowedSession } from "./follow-session.ts";
import { translated } from "./guest-errors.ts";
import { LinkedExecutions } from "./linked-executions.ts";
import { LinkedFiles } from "./linked-files.ts";
import { LinkedSessions } from "./linked-sessions.ts";
import { connectPort } from "./linked-tunnel.ts";
import { quiesceRequestOf, quiesceResultOf } from "./quiesce-report.ts";
import { resourceUseOf } from "./resource-use.ts";
import { durationOf } from "./start-request.ts";

/** What all guests of one dialler hold right now. */
export interface GuestCounts {
  /** Connections that stand, or are being made. */
  connections: number;
  /** Sessions that are followed. */
  attachments: number;
}

/** See `GuestDialler`. */
export interface LinkDialler extends GuestDialler {
  readonly counts: GuestCounts;
  guest(...of: Parameters<GuestDialler["guest"]>): LinkedGuest;
}

/** Reaches guests over the framed link. */
export function guestDialler(clock: Clock, counts = noCounts()): LinkDialler {
  return {
    counts,
    guest: (address, unreached) => new LinkedGuest(address, clock, sharedLink(address, clock, counts, unreached)),
  };
}

function noCounts(): GuestCounts {
  return { connections: 0, attachments: 0 };
}

function sharedLink(
  address: GuestAddress,
  clock: Clock,
  counts: GuestCounts,
  unreached: () => void = () => undefined,
): SharedLink {
  const target = { host: address.host, port: address.port, token: address.podUid, counts };
  return { client: new LinkClient(target, clock), count: { executions: 0 }, attached: new Set(), counts, unreached };
}

/** What the views of one guest share. */
interface SharedLink {
  readonly client: LinkClient;
  readonly count: { executions: number };
  readonly attached: Set<FollowedSession>;
  readonly counts: GuestCounts;
  /** See `GuestDialler.guest`. */
  readonly unreached: () => void;
}

/** One guest agent, over the framed link. Connections are made at the first call and let go when idle. */
export class LinkedGuest implements Guest {
  readonly address: GuestAddress;
  readonly files: LinkedFiles;
  readonly executions: LinkedExecutions;
  readonly sessions: LinkedSessions;
  readonly #clock: Clock;
  readonly #client: LinkClient;
  readonly #link: GuestLink;
  readonly #count: { executions: number };
  readonly #shared: SharedLink;

  constructor(
    address: GuestAddress,
    clock: Clock,
    shared = sharedLink(address, clock, noCounts()),
    epoch?: HolderEpoch,
  ) {
    this.address = address;
    this.#clock = clock;
    this.#shared = shared;
    this.#client = shared.client;
    this.#count = shared.count;
    this.#link = this.#client.under(epoch);
    this.files = new LinkedFiles(this.#link, clock);
    this.executions = new LinkedExecutions(this.#link, clock, this.#count, shared.unreached);
    this.sessions = new LinkedSessions(this.#link, clock, shared);
  }

  /** Executions that are followed through this client. */
  get liveExecutions(): number {
    return this.#count.executions;
  }

  under(epoch: HolderEpoch | undefined): LinkedGuest {
    return new LinkedGuest(this.address, this.#clock, this.#shared, epoch);
  }

  async fence(epoch: HolderEpoch, within: Deadline): Promise<void> {
    await translated(this.#link.call(AgentService.method.fence, { epoch: BigInt(epoch) }, { within }));
  }

  async quiesce(order: QuiesceOrder, within: Deadline): Promise<QuiesceResult> {
    const request = quiesceRequestOf(order);
    return quiesceResultOf(await translated(this.#link.call(DiskService.method.quiesce, request, { within })));
  }

  async releaseQuiesce(holdId: string, within: Deadline): Promise<void> {
    await translated(this.#link.call(DiskService.method.releaseQuiesce, { holdId }, { within }));
  }

  async flush(timeoutMs: number, within: Deadline): Promise<{ readonly tookMs: number }> {
    const request = { timeout: durationOf(timeoutMs) };
    const { took } = await translated(this.#link.call(DiskService.method.flush, request, { within }));
    return { tookMs: took === undefined ? 0 : Number(took.seconds) * 1_000 + took.nanos / 1e6 };
  }

  async releaseSessions(why: HoldfastError, within: Deadline): Promise<void> {
    await this.sessions.releaseAll(why, within);
  }

  connectPort(wish: PortWish, signal: AbortSignal): Promise<GuestTunnel> {
    return connectPort(this.#link, this.#clock, wish, signal);
  }

  async health(within: Deadline, { use } = { use: false }): Promise<GuestHealth> {
    const health = await translated(this.#link.call(AgentService.method.health, { includeUse: use }, { within }));
    const { serving, protocolVersion, features } = health;
    return { serving, protocolVersion, features, bootId: bootIdOf(health.bootId), use: resourceUseOf(health.use) };
  }

  async probe(within: Deadline): Promise<string> {
    return (await translated(this.#link.call(AgentService.method.probe, {}, { within }))).processStatus;
  }

  async *execute(wish: ExecutionWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent, void, undefined> {
    this.#count.executions += 1;
    try {
      yield* new FollowedCommand(this.#link, this.#clock, executed(wish), signal, this.#shared.unreached).events();
    } finally {
      this.#count.executions -= 1;
    }
  }

  retire(): void {
    this.#client.retire();
  }

  close(): void {
    this.#client.close();
  }
}
