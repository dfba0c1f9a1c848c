import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Origin, type Workspace } from "@holdfast/api/holdfast/v1/common_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { givenKubeconfig } from "../given-cluster.ts";
import { holdfast } from "./cli.ts";
import { dataFolder, eventually, shell, startService } from "./harness.ts";

const script = join(import.meta.dirname, "holding-client.ts");
const workspaceId = "w";

describe("GetWorkspace", () => {
  let folder: Awaited<ReturnType<typeof dataFolder>>;
  let service: Awaited<ReturnType<typeof startService>>;

  beforeAll(async () => {
    folder = await dataFolder();
    service = await startService(folder.path);
    await service.workspaces.openWorkspace({ workspaceId });
  });
  afterAll(async () => {
    await service.stop();
    await folder[Symbol.asyncDispose]();
  });

  const read = async (includeHealth: boolean): Promise<Workspace> => {
    const { workspace } = await service.workspaces.getWorkspace({ workspaceId, includeHealth });
    return workspace ?? expect.unreachable();
  };
  const held = async () => {
    const { liveExecutions, liveSessions, livePorts } = await read(false);
    return { liveExecutions, liveSessions, livePorts };
  };
  const nothing = { liveExecutions: 0, liveSessions: 0, livePorts: 0 };
  const heldAre = (wanted: Awaited<ReturnType<typeof held>>) =>
    eventually(20_000, async () => {
      const now = await held();
      return JSON.stringify(now) === JSON.stringify(wanted) ? now : undefined;
    });

  it("tells executions, sessions and ports that this process holds, and none once their clients are killed", async () => {
    expect(await held()).toEqual(nothing);
    const listen = "require('net').createServer().listen(0,'127.0.0.1',function(){console.log(this.address().port)})";
    const serve = `node -e "${listen}" >port </dev/null & until test -s port; do sleep 0.05; done; cat port`;
    const port = (await shell(service, workspaceId, serve)).stdout.trim();
    expect(await held()).toEqual(nothing); // What runs in the guest is held by nobody.
    const clients: ChildProcess[] = [];
    for (const many of [1, 2]) {
      const client = spawn(process.execPath, [script, service.target, workspaceId, port], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      clients.push(client);
      const gone = once(client, "exit");
      const lines = createInterface({ input: client.stdout ?? expect.unreachable() });
      await Promise.race([once(lines, "line"), gone.then(() => Promise.reject(new Error("it ended by itself")))]);
      expect(await held()).toEqual({ liveExecutions: many, liveSessions: many, livePorts: many });
    }
    // The handle is no more than a record: what is held is held without it.
    expect(await service.workspaces.closeWorkspace({ workspaceId })).toMatchObject({ wasOpen: true });
    expect(await held()).toEqual({ liveExecutions: 2, liveSessions: 2, livePorts: 2 });
    clients[0]?.kill("SIGKILL");
    expect(await heldAre({ liveExecutions: 1, liveSessions: 1, livePorts: 1 })).toBeTruthy();
    clients[1]?.kill("SIGKILL");
    expect(await heldAre(nothing)).toEqual(nothing);
    await service.workspaces.openWorkspace({ workspaceId });
  });

  it("tells disk and memory only where the guest is asked, as its kernel does", async () => {
    expect((await read(false)).pod).toMatchObject({ restartCount: 0 });
    expect((await read(false)).pod?.disk).toBeUndefined();
    const { pod } = await read(true);
    const facts = (await shell(service, workspaceId, "stat -f -c '%S %b' /workspace")).stdout.trim().split(" ");
    const [size = 0n, blocks = 0n] = facts.map(BigInt);
    const disk = pod?.disk ?? expect.unreachable();
    expect(disk.totalBytes).toBe(size * blocks);
    expect(disk.usedBytes > 0n && disk.usedBytes + disk.availableBytes <= disk.totalBytes).toBe(true);
    // The embedded cluster's pods see no control groups: what cannot be read is not known.
    if (givenKubeconfig === undefined) expect(pod?.memory).toBeUndefined();
    await service.workspaces.closeWorkspace({ workspaceId });
    const through = await read(true);
    expect(through).toMatchObject({ origin: Origin.UNSPECIFIED, pod: { restartCount: 0 } });
    expect([through.health, through.pod?.disk, through.pod?.memory]).toEqual([undefined, undefined, undefined]);
    await service.workspaces.openWorkspace({ workspaceId });
  });

  it("tells restarts of the agent's container and how it ended, also to one who has not opened it", async () => {
    expect((await read(false)).pod).not.toHaveProperty("termination");
    const before = Date.now();
    await shell(service, workspaceId, "kill -9 $PPID").then(
      () => expect.unreachable("a killed agent cannot report an exit"),
      (error: unknown) => expect(String(error)).toBeTruthy(),
    );
    const assertEnded = ({ pod }: Workspace): void => {
      expect(pod).toMatchObject({ restartCount: 1, termination: { reason: "Error", exitCode: 137 } });
      expect(pod?.image).not.toBe("");
      const finishedAt = pod?.termination?.finishedAt ?? expect.unreachable();
      // By the node's clock, in whole seconds.
      expect(timestampMs(finishedAt)).toBeGreaterThanOrEqual(before - 1_000);
      expect(timestampMs(finishedAt)).toBeLessThanOrEqual(Date.now());
      expect(pod?.lastTermination).toMatch(/^Error, exit 137 at /);
    };
    const again = await eventually(30_000, async () => {
      const workspace = await read(true);
      return workspace.health && workspace.pod?.restartCount === 1 ? workspace : undefined;
    });
    assertEnded(again);
    expect(again.pod?.disk?.totalBytes).toBeGreaterThan(0n);
    expect(await heldAre(nothing)).toEqual(nothing);
    const shown = await holdfast(service.target, ["show", workspaceId]);
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    for (const line of [
      /^state +running$/m,
      /^restarts +1$/m,
      /^last ended +Error, exit code 137, /m,
      /^disk +.* used, /m,
    ]) {
      expect(shown.stdout).toMatch(line);
    }
    expect(shown.stdout).toMatch(/^held open here +0 executions, 0 sessions, 0 ports$/m);
    await service.workspaces.closeWorkspace({ workspaceId });
    assertEnded(await read(false));
  });
});
