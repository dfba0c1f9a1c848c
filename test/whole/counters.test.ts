import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { dataFolder, eventually, startService, webTargetOf } from "./harness.ts";

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
