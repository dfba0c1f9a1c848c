import { join } from "node:path";
import { WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { templateResource } from "@holdfast/contract";
import { CustomObjectsApi, KubeConfig } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { dataFolder, eventually, reasonOf, shell, startService } from "./harness.ts";

interface Template {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: { podTemplate: { spec: { terminationGracePeriodSeconds: number; containers: { command?: string[] }[] } } };
}

/** Adds a template whose container ignores SIGTERM: only the grace period's end stops its pod. */
async function addStubbornTemplate(dataDir: string, graceSeconds: number): Promise<void> {
  const config = new KubeConfig();
  config.loadFromFile(join(dataDir, "kubeconfig"));
  const api = config.makeApiClient(CustomObjectsApi);
  const { group, version, plural } = templateResource;
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace ?? "default";
  const template = (await api.getNamespacedCustomObject({
    group,
    version,
    plural,
    namespace,
    name: "default",
  })) as Template;
  const pod = template.spec.podTemplate.spec;
  pod.terminationGracePeriodSeconds = graceSeconds;
  const container = pod.containers[0];
  if (!container) throw new Error("the default template has no container");
  container.command = [
    "/bin/sh",
    "-c",
    "trap '' TERM; /opt/holdfast/node /opt/holdfast/agent/main.mjs & while :; do wait; sleep 0.1; done",
  ];
  const body = { ...template, metadata: { name: "stubborn" } };
  await api.createNamespacedCustomObject({ group, version, plural, namespace, body });
}

describe("suspend", () => {
  it("L2 stays SUSPENDING while a pod that ignores SIGTERM lives, until its grace ends", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    await addStubbornTemplate(folder.path, 3);
    await service.workspaces.openWorkspace({ workspaceId: "stubborn", template: "stubborn" });

    const startedAt = performance.now();
    const suspend = service.workspaces.suspendWorkspace({ workspaceId: "stubborn" });
    const seen = await eventually(2_000, async () => {
      const { workspace } = await service.workspaces.getWorkspace({ workspaceId: "stubborn" });
      return workspace?.state === WorkspaceState.SUSPENDING ? workspace : undefined;
    });
    expect(seen.transition?.waitingFor).not.toBe("");
    expect((await reasonOf(shell(service, "stubborn", "true"))).reason).toBe("WORKSPACE_SUSPENDED");
    expect((await suspend).workspace?.state).toBe(WorkspaceState.SUSPENDED);
    expect(performance.now() - startedAt).toBeGreaterThan(2_900);
  });

  it("L25 says SUSPEND_UNCONFIRMED when the pod outlives stop_timeout, and the next suspend confirms it", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    await addStubbornTemplate(folder.path, 3);
    await service.workspaces.openWorkspace({ workspaceId: "stubborn", template: "stubborn" });
    const short = service.workspaces.suspendWorkspace({
      workspaceId: "stubborn",
      stopTimeout: { seconds: 1n, nanos: 0 },
    });
    const failure = await reasonOf(short);
    expect(failure).toMatchObject({ reason: "SUSPEND_UNCONFIRMED", code: "DeadlineExceeded" });
    expect(failure.metadata.pod).toBe("namzu-ws-stubborn");
    const { workspace } = await service.workspaces.getWorkspace({ workspaceId: "stubborn" });
    expect(workspace?.state).toBe(WorkspaceState.SUSPENDING);
    expect((await service.workspaces.suspendWorkspace({ workspaceId: "stubborn" })).workspace?.state).toBe(
      WorkspaceState.SUSPENDED,
    );
  });

  it("B75 resumes at once after each suspend, again and again", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    await service.workspaces.openWorkspace({ workspaceId: "again" });
    await shell(service, "again", "echo 0 > count");
    for (let round = 1; round <= 15; round += 1) {
      const suspended = await service.workspaces.suspendWorkspace({ workspaceId: "again" });
      const resumed = await service.workspaces.resumeWorkspace({ workspaceId: "again" });
      expect([suspended.workspace?.state, resumed.workspace?.state]).toEqual([
        WorkspaceState.SUSPENDED,
        WorkspaceState.RUNNING,
      ]);
      expect((await shell(service, "again", "n=$(cat count); echo $((n + 1)) > count; cat count")).stdout).toBe(
        `${round}\n`,
      );
    }
  });
});
