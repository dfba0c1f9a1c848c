import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { dataFolder, eventually, startService, webClientsOf, webTargetOf } from "./harness.ts";

const script = join(import.meta.dirname, "busy-client.ts");

it("what clients that are killed in the middle of everything held returns to zero", async () => {
  await using folder = await dataFolder();
  await using service = await startService(folder.path);
  await service.workspaces.openWorkspace({ workspaceId: "w" });
  const counters = async () => {
    const { counters: counted } = await service.server.getServerInfo({});
    if (!counted) throw new Error("no counters");
    const { calls, streams, attachments, watchers, guestConnections } = counted;
    return { calls, streams, attachments, watchers, guestConnections };
  };
  for (let round = 0; round < 3; round += 1) {
    const client = spawn(process.execPath, [script, service.target, webTargetOf(service), "w"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const gone = once(client, "exit");
    const lines = createInterface({ input: client.stdout });
    await Promise.race([once(lines, "line"), gone.then(() => Promise.reject(new Error("the client ended by itself")))]);
    const busy = await eventually(10_000, async () => {
      const now = await counters();
      return now.calls >= 10 ? now : undefined;
    });
    expect(busy).toMatchObject({ attachments: 2, watchers: 3 });
    expect(busy.streams).toBeGreaterThanOrEqual(9);
    expect(busy.guestConnections).toBeGreaterThanOrEqual(6);
    client.kill("SIGKILL");
    await gone;
    const left = await eventually(30_000, async () => {
      const now = await counters();
      // Connections that wait for the next call stand for a minute more: one that controls, and the spare ones.
      return now.calls + now.streams + now.attachments + now.watchers === 0 && now.guestConnections <= 4
        ? now
        : undefined;
    });
    expect(left).toMatchObject({ calls: 0, streams: 0, attachments: 0, watchers: 0 });
    for (const sessionId of [`t1-${client.pid}`, `t2-${client.pid}`]) {
      await service.sessions.killSession({ workspaceId: "w", sessionId });
    }
  }
  await service.workspaces.closeWorkspace({ workspaceId: "w" });
  const { counters: closed } = await service.server.getServerInfo({});
  expect(closed?.handles).toBe(0);
  expect(await eventually(10_000, async () => ((await counters()).guestConnections === 0 ? true : undefined))).toBe(
    true,
  );
});

it("B51 watches and attaches that are cancelled, at once or in the middle, leave nothing: 5,000 of them", async () => {
  await using folder = await dataFolder();
  await using service = await startService(folder.path);
  const web = webClientsOf(service);
  const workspaceId = "w";
  await service.workspaces.openWorkspace({ workspaceId });
  const running = service.executions.execute({ workspaceId, executionId: "e", command: "sleep", args: ["600"] });
  const started = running[Symbol.asyncIterator]();
  await started.next();
  const open = (at: number, signal: AbortSignal): AsyncIterable<unknown> => {
    const { workspaces, executions } = at % 2 === 0 ? service : web;
    if (at % 3 === 0) return executions.attachExecution({ workspaceId, executionId: "e" }, { signal });
    return workspaces.watchWorkspace({ workspaceId: at % 5 === 0 ? `absent-${at}` : workspaceId }, { signal });
  };
  const cancel = async (at: number, isAtOnce: boolean): Promise<void> => {
    const leaving = new AbortController();
    const stream = open(at, leaving.signal)[Symbol.asyncIterator]();
    const first = stream.next();
    if (isAtOnce) leaving.abort();
    await first.then(
      () => undefined,
      (error: unknown) => {
        if (!isAtOnce) throw error;
      },
    );
    leaving.abort();
    await stream.next().catch(() => undefined); // Its end is the client's own.
  };
  const each = 2_500;
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < 2 * each) {
      const at = next;
      next += 1;
      await cancel(at, at % 4 < 2);
    }
  };
  await Promise.all(Array.from({ length: 50 }, worker));
  const left = await eventually(2_000, async () => {
    const { counters } = await service.server.getServerInfo({});
    // The command that is followed is the one that is left.
    return counters && counters.watchers === 0 && counters.streams === 1 ? counters : undefined;
  });
  expect(left).toMatchObject({ calls: 1, handles: 1, attachments: 0 });
  await started.return?.();
});
