import { orAborted } from "@holdfast/async";
import { attachmentIdOf, bootIdOf, type HolderEpoch } from "@holdfast/contract";
import {
  executionId,
  executionWish,
  FakeExecutions,
  FakeSessions,
  openWish,
  patient,
  settleTasks,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { type Guest, GuestLost } from "../ports/guest.ts";
import type { SessionEvent } from "../ports/sessions.ts";
import type { GuestTunnel } from "../ports/tunnel.ts";
import { LiveCalls, type LiveCounts } from "../state/live-calls.ts";
import { Workspace } from "../workspace.ts";
import { Terminal } from "./terminal.ts";

const id = workspaceId("demo");
const x = executionId("x");
const s = "s" as never;
const bootId = bootIdOf("b");
const nobody: LiveCounts = { executions: 0, sessions: 0, ports: 0 };

const started = { t: "started", executionId: x, bootId, attached: false } as const;
const attached = { t: "attached", attachmentId: attachmentIdOf("a"), bootId, nextInputSequence: 0, offset: 0 };

let live: LiveCalls;
let workspace: Workspace;
/** Ends what the guest streams: in order, or with what broke. */
let end: PromiseWithResolvers<void>;

/** One event, and then nothing until the guest ends it or its caller goes. */
async function* held<Event>(event: Event, signal: AbortSignal): AsyncGenerator<Event> {
  yield event;
  await orAborted(end.promise, signal);
}

beforeEach(async () => {
  end = Promise.withResolvers();
  end.promise.catch(() => undefined);
  live = new LiveCalls();
  const on = stage();
  on.guests.shape = (script) => {
    const { health } = script;
    const features = ["execution-control", "executions", "holder-epoch", "ports", "probe", "sessions"];
    script.health = async (within) => ({ ...(await health(within)), features });
  };
  const executions = Object.assign(new FakeExecutions(), {
    attach: (_: unknown, signal: AbortSignal) => held(started, signal),
  });
  const sessions = Object.assign(new FakeSessions(), {
    attach: (_: unknown, signal: AbortSignal) => held(attached as SessionEvent, signal),
  });
  const connectPort = async (_: unknown, signal: AbortSignal): Promise<GuestTunnel> => ({
    received: held(new Uint8Array(1), signal),
    ended: end.promise,
    send: async () => undefined,
    closeSending: () => undefined,
    destroy: () => undefined,
  });
  const execute = (_: unknown, signal: AbortSignal) => held(started, signal);
  const shaped = (guest: Guest): Guest => {
    const under = guest.under.bind(guest);
    const more = { executions, sessions, connectPort, execute };
    return Object.assign(guest, more, { under: (epoch?: HolderEpoch) => shaped(under(epoch)) });
  };
  const guests: typeof on.deps.guests = { guest: (address) => shaped(on.guests.guest(address)) };
  workspace = new Workspace(id, { ...on.deps, guests }, undefined, live);
  await workspace.open(openWish, patient);
});

async function* nothing(): AsyncGenerator<never> {}

const attach = { executionId: x, fromOffset: 0, maxOutputBytes: undefined, expectedBootId: undefined };
const session = {
  sessionId: s,
  fromOffset: 0,
  mode: "exclusive",
  attachmentId: undefined,
  expectedBootId: undefined,
  size: undefined,
} as const;

type Call = (signal: AbortSignal) => AsyncGenerator<unknown, void>;
const calls: readonly (readonly [string, keyof LiveCounts, Call])[] = [
  ["Execute", "executions", (signal) => workspace.execute(executionWish(), signal)],
  [
    "ExecuteInteractive",
    "executions",
    (signal) => workspace.executionsUnder(undefined, "X").interactive(executionWish(), nothing(), signal),
  ],
  ["AttachExecution", "executions", (signal) => workspace.executionsUnder(undefined, "X").attach(attach, signal)],
  ["AttachTerminal", "sessions", (signal) => workspace.sessionsUnder(undefined, "X").attach(session, "kept", signal)],
  [
    "Terminal",
    "sessions",
    (signal) => {
      const wish = { verb: "attach", program: {} as never, attach: session } as const;
      return workspace.sessionsUnder(undefined, "X").terminal(new Terminal(wish, nothing()), signal);
    },
  ],
  ["Connect", "ports", (signal) => workspace.connectPort({ port: 80, host: "127.0.0.1" }, nothing(), signal)],
];

describe("what is held open", () => {
  for (const [name, kind, call] of calls) {
    const one = { ...nobody, [kind]: 1 };

    it(`by ${name} counts as one of ${kind}, until its client vanishes`, async () => {
      const client = new AbortController();
      const stream = call(client.signal);
      expect((await stream.next()).done).toBe(false);
      expect(workspace.view().live).toEqual(one);
      const waiting = drained(stream);
      client.abort(new Error("the client is gone"));
      await waiting;
      expect(workspace.view().live).toEqual(nobody);
      expect(live.size).toBe(0);
    });

    it(`by ${name} counts no more once its reader turns away`, async () => {
      const stream = call(patient);
      await stream.next();
      await stream.return();
      expect(workspace.view().live).toEqual(nobody);
    });

    it(`by ${name} counts no more once the guest has ended it, in order or not`, async () => {
      for (const broken of [false, true]) {
        end = Promise.withResolvers();
        end.promise.catch(() => undefined);
        const stream = call(patient);
        await stream.next();
        if (broken) end.reject(new GuestLost("cut"));
        else end.resolve();
        await drained(stream);
        expect(workspace.view().live).toEqual(nobody);
      }
    });

    it(`by ${name} counts once for each that holds it, and goes on counting while the pod is taken away`, async () => {
      const [first, second] = [call(patient), call(patient)];
      await first.next();
      await second.next();
      await workspace.suspend(suspendWish, patient);
      expect(workspace.view()).toMatchObject({ state: "suspended", live: { ...nobody, [kind]: 2 } });
      await first.return();
      expect(workspace.view().live).toEqual(one);
      await second.return();
      expect(workspace.view().live).toEqual(nobody);
    });
  }

  it("is nothing of a call that was refused before its guest was asked", async () => {
    await workspace.suspend(suspendWish, patient);
    for (const [name, , call] of calls) {
      await expect(call(patient).next(), name).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    }
    await settleTasks();
    expect(live.size).toBe(0);
  });
});

async function drained(stream: AsyncGenerator<unknown, void>): Promise<void> {
  const all = async (): Promise<void> => {
    for await (const _ of stream);
  };
  await all().catch(() => undefined); // How it ends is told by other tests.
}
