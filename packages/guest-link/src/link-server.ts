import { createServer, type Server, type Socket } from "node:net";
import type { Clock } from "@holdfast/async";
import { linkConnectionsMax, linkSilenceMaxMs, linkUnauthenticatedMax } from "@holdfast/contract";
import { ControlAgent } from "./control-agent.ts";
import { type AgentIdentity, greet, type ProvedCaller, turnAway } from "./handshake-agent.ts";
import { LinkLost } from "./link-errors.ts";
import type { Router } from "./router.ts";
import { AgentStream, type ForcedEnd } from "./stream-agent.ts";

/** The connections of one caller: its control connection answers for the liveness of its streams. */
interface Group {
  /** More than one, where the caller has lost one and the agent has not noticed yet. */
  readonly controls: Set<ControlAgent>;
  readonly streams: Set<AgentStream>;
  /** Since when there is no control connection. */
  aloneSinceMs: number;
}

const livenessCheckMs = 5_000;

/** Listens for the control plane. Bounded against peers that do not prove the token (G2), and finds silent ones (G3). */
export class LinkServer {
  readonly #server: Server;
  readonly #agent: AgentIdentity;
  readonly #router: Router;
  readonly #groups = new Map<string, Group>();
  readonly #sockets = new Set<Socket>();
  #unproved = 0;
  #proved = 0;
  readonly #clock: Clock;
  #cancelCheck: (() => void) | undefined;

  constructor(agent: AgentIdentity, router: Router, clock: Clock) {
    this.#clock = clock;
    this.#agent = agent;
    this.#router = router;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Resolves with the port once connections are accepted; rejects when the address cannot be had. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => console.error(`guest link: ${error.message}`));
        const address = this.#server.address();
        resolve(typeof address === "object" && address !== null ? address.port : port);
      });
    });
  }

  /** Connections at the moment. */
  get connections(): { readonly unproved: number; readonly proved: number } {
    return { unproved: this.#unproved, proved: this.#proved };
  }

  /** Takes no further connection and closes those there are. */
  close(): void {
    this.#server.close();
    this.#cancelCheck?.();
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(socket: Socket): void {
    socket.on("error", () => undefined); // Its close follows, and is what counts.
    if (this.#unproved >= linkUnauthenticatedMax) {
      turnAway(socket, `${linkUnauthenticatedMax} connections are already waiting to be authenticated`);
      return;
    }
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.#unproved += 1;
    greet(
      socket,
      this.#agent,
      {
        mayEnter: () =>
          this.#proved >= linkConnectionsMax ? `${linkConnectionsMax} connections are already served` : undefined,
        proved: (caller) => {
          this.#proved += 1;
          const group = this.#groupOf(caller.clientId);
          this.#checkLater();
          if (caller.phase === "control") this.#enterControl(caller, group);
          else this.#enterStream(caller, group);
        },
        settled: () => {
          this.#unproved -= 1;
        },
      },
      this.#clock,
    );
  }

  #groupOf(clientId: string): Group {
    const group = this.#groups.get(clientId) ?? {
      controls: new Set(),
      streams: new Set(),
      aloneSinceMs: this.#clock.monotonicMs(),
    };
    this.#groups.set(clientId, group);
    return group;
  }

  #enterControl({ socket, clientId }: ProvedCaller, group: Group): void {
    const control = new ControlAgent(socket, this.#router, this.#agent.bootId, this.#clock, () => {
      group.controls.delete(control);
      if (group.controls.size === 0) group.aloneSinceMs = this.#clock.monotonicMs();
      this.#left(clientId, group);
    });
    group.controls.add(control);
    socket.enter("control", control);
    // What happened while the caller had no control connection, or one that it had lost.
    for (const { forcedEnd } of group.streams) if (forcedEnd !== undefined) control.tellForced(forcedEnd);
  }

  #enterStream({ socket, clientId }: ProvedCaller, group: Group): void {
    const needs = {
      router: this.#router,
      bootId: this.#agent.bootId,
      clock: this.#clock,
      // On each of them: which ones the caller has lost is not known here.
      tellForced: (end: ForcedEnd) => {
        for (const control of group.controls) control.tellForced(end);
      },
    };
    const stream = new AgentStream(socket, needs, () => {
      group.streams.delete(stream);
      this.#left(clientId, group);
    });
    group.streams.add(stream);
    socket.enter("stream", stream);
  }

  #left(clientId: string, group: Group): void {
    this.#proved -= 1;
    const empty = group.controls.size === 0 && group.streams.size === 0;
    if (empty && this.#groups.get(clientId) === group) this.#groups.delete(clientId);
    if (this.#groups.size > 0) return;
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
  }

  /** One timer for all callers, and none while there is no caller. */
  #checkLater(): void {
    this.#cancelCheck ??= this.#clock.schedule(livenessCheckMs, () => {
      this.#cancelCheck = undefined;
      this.#checkLiveness();
      if (this.#groups.size > 0) this.#checkLater();
    });
  }

  /** A caller that is gone without a word is known by its control connection alone: a stream may be silent, or held back. */
  #checkLiveness(): void {
    const now = this.#clock.monotonicMs();
    for (const group of [...this.#groups.values()]) {
      const cause = new LinkLost(`the caller was silent for ${linkSilenceMaxMs} ms`);
      const isSilent = (sinceMs: number): boolean => now - sinceMs > linkSilenceMaxMs;
      const lastHeardMs = Math.max(...[...group.controls].map((control) => control.lastHeardMs));
      for (const control of group.controls) if (isSilent(control.lastHeardMs)) control.destroy(cause);
      if (!isSilent(group.controls.size === 0 ? group.aloneSinceMs : lastHeardMs)) continue;
      for (const stream of group.streams) stream.destroy(cause);
    }
  }
}
