import { Origin, QuiesceOutcome, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { OutputStream } from "@holdfast/api/holdfast/v1/execution_pb";
import { CreatePolicy } from "@holdfast/api/holdfast/v1/workspace_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dataFolder, eventually, reasonOf, shell, startService, webClientsOf } from "./harness.ts";

describe("one service on the embedded cluster", () => {
  let folder: Awaited<ReturnType<typeof dataFolder>>;
  let service: Awaited<ReturnType<typeof startService>>;

  beforeAll(async () => {
    folder = await dataFolder();
    service = await startService(folder.path);
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
    await folder[Symbol.asyncDispose]();
  });

  it("opens, runs, suspends, resumes with the same disk in a new pod, and destroys", async () => {
    const opened = await service.workspaces.openWorkspace({ workspaceId: "tour" });
    expect(opened.workspace).toMatchObject({
      state: WorkspaceState.RUNNING,
      origin: Origin.CREATED,
      root: "/workspace",
      template: "default",
    });
    expect(await shell(service, "tour", "echo kept > note; pwd; id -u")).toEqual({
      stdout: "/workspace\n1001\n",
      stderr: "",
      code: 0,
    });

    const again = await service.workspaces.openWorkspace({ workspaceId: "tour" });
    expect(again.workspace?.origin).toBe(Origin.ALREADY_OPEN);

    const suspended = await service.workspaces.suspendWorkspace({ workspaceId: "tour" });
    expect(suspended.workspace?.state).toBe(WorkspaceState.SUSPENDED);
    expect(suspended.workspace?.pod).toBeUndefined();
    expect(suspended.flush?.outcome).toBe(1); // FLUSHED
    expect((await reasonOf(shell(service, "tour", "true"))).reason).toBe("WORKSPACE_SUSPENDED");

    const resumed = await service.workspaces.resumeWorkspace({ workspaceId: "tour" });
    expect(resumed.workspace?.state).toBe(WorkspaceState.RUNNING);
    expect(resumed.workspace?.identity?.sandboxUid).toBe(opened.workspace?.identity?.sandboxUid);
    expect(resumed.workspace?.identity?.podUid).not.toBe(opened.workspace?.identity?.podUid);
    expect((await shell(service, "tour", "cat note")).stdout).toBe("kept\n");

    expect((await service.inventory.listWorkspaces({})).workspaces.map((row) => row.workspaceId)).toContain("tour");
    const destroyed = await service.workspaces.destroyWorkspace({ workspaceId: "tour", deleteDisk: true });
    expect(destroyed.workspace).toBeUndefined();
    expect((await service.inventory.listWorkspaces({})).workspaces.map((row) => row.workspaceId)).not.toContain("tour");
    expect((await reasonOf(service.workspaces.getWorkspace({ workspaceId: "tour" }))).reason).toBe(
      "WORKSPACE_NOT_FOUND",
    );
    await service.workspaces.destroyWorkspace({ workspaceId: "tour", deleteDisk: true }); // L5: a deleted one succeeds
  });

  it("L28 quiesces with a hold and lets it go, flushes and refreshes, by gRPC and by Connect; the pod stays", async () => {
    const workspaceId = "quiet";
    const opened = await service.workspaces.openWorkspace({ workspaceId });
    for (const { workspaces, executions } of [service, webClientsOf(service)]) {
      const sleeper = executions.runCommand({ workspaceId, command: "sh", args: ["-c", "touch on; sleep 600"] });
      await eventually(10_000, async () => (await shell(service, workspaceId, "test -e on")).code === 0 || undefined);
      const { quiesce, holdId } = await workspaces.quiesceWorkspace({ workspaceId, hold: { seconds: 600n } });
      expect(quiesce?.outcome).toBe(QuiesceOutcome.QUIESCED);
      expect((await sleeper).exited?.status.case).toBe("signal");
      expect(holdId).not.toBe("");
      expect((await reasonOf(shell(service, workspaceId, "true"))).reason).toBe("AGENT_RETIRING");
      expect((await workspaces.flushWorkspace({ workspaceId })).took).toBeDefined();
      await workspaces.releaseWorkspace({ workspaceId, holdId });
      await workspaces.releaseWorkspace({ workspaceId, holdId }); // One that is over is a success.
      expect((await shell(service, workspaceId, "rm on; echo on")).stdout).toBe("on\n");
      const leased = await workspaces.quiesceWorkspace({ workspaceId, hold: { nanos: 300_000_000 } });
      expect(leased.holdId).not.toBe("");
      await eventually(10_000, async () =>
        (await shell(service, workspaceId, "true").catch(() => undefined))?.code === 0 ? true : undefined,
      );
      const { workspace } = await workspaces.refreshWorkspace({ workspaceId });
      expect(workspace).toMatchObject({ state: WorkspaceState.RUNNING, identity: opened.workspace?.identity });
    }
  });

  it("streams both outputs with offsets that neither repeat nor skip, then one exit", async () => {
    await service.workspaces.openWorkspace({ workspaceId: "stream" });
    const events = [];
    let next = 0n;
    const bytes = { [OutputStream.STDOUT]: 0, [OutputStream.STDERR]: 0 };
    const line = "head -c 300000 /dev/zero; head -c 1000 /dev/zero >&2; kill -9 $$";
    for await (const { event } of service.executions.execute({
      workspaceId: "stream",
      command: "sh",
      args: ["-c", line],
    })) {
      events.push(event.case);
      if (event.case !== "output") continue;
      expect(event.value.offset).toBe(next);
      expect(event.value.data.length).toBeLessThanOrEqual(32 * 1024);
      next += BigInt(event.value.data.length);
      if (event.value.stream !== OutputStream.UNSPECIFIED) bytes[event.value.stream] += event.value.data.length;
    }
    expect(bytes).toEqual({ [OutputStream.STDOUT]: 300_000, [OutputStream.STDERR]: 1000 });
    expect(events[0]).toBe("started");
    expect(events.at(-1)).toBe("exited");
    expect(events.filter((name) => name === "exited" || name === "started")).toHaveLength(2);
  });

  it("runs a command once under one id, and attaches the second caller", async () => {
    await service.workspaces.openWorkspace({ workspaceId: "once" });
    const call = () =>
      service.executions.runCommand({
        workspaceId: "once",
        executionId: "e1",
        command: "sh",
        args: ["-c", "echo x >> ran; sleep 0.2"],
      });
    await Promise.all([call(), call()]);
    expect((await shell(service, "once", "cat ran")).stdout).toBe("x\n");
    const other = service.executions.runCommand({ workspaceId: "once", executionId: "e1", command: "true" });
    expect(await reasonOf(other)).toMatchObject({ reason: "EXECUTION_EXISTS", code: "AlreadyExists" });
  });

  it("says all that is wrong with a request at once", async () => {
    const failure = await reasonOf(
      service.executions.runCommand({ workspaceId: "Not A Name", command: "", env: { "1x": "" } }),
    );
    expect(failure).toMatchObject({ reason: "INVALID_REQUEST", code: "InvalidArgument" });
    expect(failure.message).toMatch(/workspace_id/);
    expect(failure.message).toMatch(/command/);
  });

  it("creates nothing for an id that must exist, and adopts nothing that must be new (L8)", async () => {
    const missing = service.workspaces.openWorkspace({ workspaceId: "mistyped", create: CreatePolicy.MUST_EXIST });
    expect((await reasonOf(missing)).reason).toBe("WORKSPACE_NOT_FOUND");
    await service.workspaces.openWorkspace({ workspaceId: "taken" });
    const taken = service.workspaces.openWorkspace({ workspaceId: "taken", create: CreatePolicy.MUST_CREATE });
    expect((await reasonOf(taken)).reason).toBe("WORKSPACE_EXISTS");
  });

  it("opens 20 workspaces at once and all of them work", async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    await Promise.all(ids.map((workspaceId) => service.workspaces.openWorkspace({ workspaceId })));
    const results = await Promise.all(ids.map((id) => shell(service, id, `echo ${id}`)));
    expect(results.map((result) => result.stdout)).toEqual(ids.map((id) => `${id}\n`));
    await Promise.all(ids.map((workspaceId) => service.workspaces.destroyWorkspace({ workspaceId, deleteDisk: true })));
  });
});
