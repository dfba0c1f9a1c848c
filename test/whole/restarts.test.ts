import { Origin, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { describe, expect, it } from "vitest";
import {
  dataFolder,
  eventually,
  processesNaming,
  reasonOf,
  shell,
  startEmbedded,
  startService,
  startServiceOn,
} from "./harness.ts";

describe("restarts", () => {
  it("keeps workspaces and disks when it is stopped and started again, and leaves no process behind", async () => {
    await using folder = await dataFolder();
    const first = await startService(folder.path);
    await first.workspaces.openWorkspace({ workspaceId: "awake" });
    await first.workspaces.openWorkspace({ workspaceId: "asleep" });
    for (const id of ["awake", "asleep"]) await shell(first, id, `echo ${id} > note`);
    await first.workspaces.suspendWorkspace({ workspaceId: "asleep" });
    expect(await first.stop()).toBe(0);
    expect(await processesNaming(folder.path)).toEqual([]);

    await using second = await startService(folder.path);
    const asleep = await second.workspaces.getWorkspace({ workspaceId: "asleep" });
    expect(asleep.workspace?.state).toBe(WorkspaceState.SUSPENDED);
    const awake = await second.workspaces.openWorkspace({ workspaceId: "awake" });
    expect(awake.workspace?.origin).toBe(Origin.ADOPTED_RUNNING);
    expect((await shell(second, "awake", "cat note")).stdout).toBe("awake\n");
    const resumed = await second.workspaces.openWorkspace({ workspaceId: "asleep" });
    expect(resumed.workspace?.origin).toBe(Origin.RESUMED);
    expect((await shell(second, "asleep", "cat note")).stdout).toBe("asleep\n");
  });

  it("loses no workspace and no disk when service and cluster are killed in one process", async () => {
    await using folder = await dataFolder();
    const first = await startService(folder.path);
    const opened = await first.workspaces.openWorkspace({ workspaceId: "kept" });
    await shell(first, "kept", "echo kept > note && sync");
    await first.kill();
    await eventually(10_000, async () => ((await processesNaming(folder.path)).length === 0 ? true : undefined));

    await using second = await startService(folder.path);
    const reopened = await second.workspaces.openWorkspace({ workspaceId: "kept" });
    expect(reopened.workspace?.identity?.sandboxUid).toBe(opened.workspace?.identity?.sandboxUid);
    expect((await shell(second, "kept", "cat note")).stdout).toBe("kept\n");
  });

  it("goes on with the same pod when only the service is killed", async () => {
    await using folder = await dataFolder();
    await using cluster = await startEmbedded(folder.path);
    const first = await startServiceOn(cluster.flags);
    const opened = await first.workspaces.openWorkspace({ workspaceId: "kept" });
    await first.kill();
    await using second = await startServiceOn(cluster.flags);
    // Not opened here: adopted silently, since it runs.
    expect((await shell(second, "kept", "echo on")).stdout).toBe("on\n");
    const seen = await second.workspaces.getWorkspace({ workspaceId: "kept" });
    expect(seen.workspace?.identity?.podUid).toBe(opened.workspace?.identity?.podUid);
  });

  it("finds every workspace again when only the cluster is killed and started", async () => {
    await using folder = await dataFolder();
    const first = await startEmbedded(folder.path);
    await using service = await startServiceOn(first.flags);
    await service.workspaces.openWorkspace({ workspaceId: "kept" });
    await shell(service, "kept", "echo kept > note && sync");
    await first.kill();
    const meanwhile = service.workspaces.openWorkspace({
      workspaceId: "other",
      readyTimeout: { seconds: 1n, nanos: 0 },
    });
    expect((await reasonOf(meanwhile)).reason).toBe("CLUSTER_UNAVAILABLE");

    await using second = await startEmbedded(folder.path);
    expect(second.flags).toEqual(first.flags);
    await using other = await startServiceOn(second.flags);
    const text = await eventually(60_000, async () => {
      try {
        return (await shell(other, "kept", "cat note")).stdout;
      } catch {
        return undefined;
      }
    });
    expect(text).toBe("kept\n");
    // The pod runs by now, under another address than the first service has held since before.
    expect((await shell(service, "kept", "cat note")).stdout).toBe("kept\n");
  });

  it("runs the next command after the agent was killed: same pod, one restart more", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    const opened = await service.workspaces.openWorkspace({ workspaceId: "agent" });
    const suicide = shell(service, "agent", "kill -9 $PPID");
    await suicide.then(
      () => expect.unreachable("a killed agent cannot report an exit"),
      (error: unknown) => expect(String(error)).toBeTruthy(),
    );
    const text = await eventually(30_000, async () => {
      try {
        return (await shell(service, "agent", "echo back")).stdout;
      } catch {
        return undefined;
      }
    });
    expect(text).toBe("back\n");
    const { workspace } = await service.workspaces.getWorkspace({ workspaceId: "agent" });
    expect(workspace?.identity?.podUid).toBe(opened.workspace?.identity?.podUid);
    expect(workspace?.pod?.restartCount).toBe(1);
  });
});
