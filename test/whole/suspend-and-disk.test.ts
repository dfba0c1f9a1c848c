import { join } from "node:path";
import { FlushOutcome, QuiesceOutcome, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { templateResource } from "@holdfast/contract";
import { CoreV1Api, CustomObjectsApi, KubeConfig } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { dataFolder, eventually, reasonOf, shell, startService } from "./harness.ts";

interface PodSpec {
  restartPolicy?: string;
  containers: { env?: { name: string; value: string }[] }[];
}

interface Template {
  apiVersion: string;
  kind: string;
  metadata: { name: string; resourceVersion?: string };
  spec: { podTemplate: { spec: PodSpec } };
}

const { group, version, plural } = templateResource;
const templates = { group, version, plural, namespace: "default" };

function clusterOf(dataDir: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(join(dataDir, "kubeconfig"));
  return config;
}

/** Edits the default template, or makes another one of it. */
async function editTemplate(dataDir: string, name: string, edit: (pod: PodSpec) => void): Promise<void> {
  const api = clusterOf(dataDir).makeApiClient(CustomObjectsApi);
  const template = (await api.getNamespacedCustomObject({ ...templates, name: "default" })) as Template;
  edit(template.spec.podTemplate.spec);
  if (name === "default") await api.replaceNamespacedCustomObject({ ...templates, name, body: template });
  else await api.createNamespacedCustomObject({ ...templates, body: { ...template, metadata: { name } } });
}

describe("suspend, with the real agent", () => {
  it("L27 L26 quiesces what a command left behind, flushes, and keeps what was written", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    await service.workspaces.openWorkspace({ workspaceId: "quiet" });
    await shell(service, "quiet", "setsid sleep 1000 >/dev/null 2>&1 & echo kept > file");
    const written = (await shell(service, "quiet", "head -c 5242880 /dev/urandom > big; sha256sum big")).stdout;
    const { workspace, quiesce, flush } = await service.workspaces.suspendWorkspace({
      workspaceId: "quiet",
      quiesce: { grace: { seconds: 0n, nanos: 200_000_000 } },
    });
    expect(workspace?.state).toBe(WorkspaceState.SUSPENDED);
    expect(quiesce?.outcome).toBe(QuiesceOutcome.QUIESCED);
    expect(quiesce?.stopped.map(({ name }) => name)).toContain("sleep");
    expect(flush?.outcome).toBe(FlushOutcome.FLUSHED);
    await service.workspaces.resumeWorkspace({ workspaceId: "quiet" });
    expect((await shell(service, "quiet", "cat file; pgrep -c sleep")).stdout).toBe("kept\n0\n");
    expect((await shell(service, "quiet", "sha256sum big")).stdout).toBe(written);
  });

  it("L31 resumes with the template's current pod template on the same disk, when asked to", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    const opened = await service.workspaces.openWorkspace({ workspaceId: "fresh" });
    expect(opened.workspace?.templateCurrent).toBe(true);
    await shell(service, "fresh", "echo kept > file");
    await editTemplate(folder.path, "default", (pod) => {
      for (const container of pod.containers)
        container.env = [...(container.env ?? []), { name: "GREETING", value: "hi" }];
    });
    const resume = async (refreshPodTemplate: boolean) => {
      await service.workspaces.suspendWorkspace({ workspaceId: "fresh" });
      return (await service.workspaces.resumeWorkspace({ workspaceId: "fresh", refreshPodTemplate })).workspace;
    };
    const before = opened.workspace?.templateRevision;
    expect((await resume(false))?.templateRevision).toBe(before);
    const refreshed = await resume(true);
    expect(refreshed?.templateCurrent).toBe(true);
    expect(refreshed?.templateRevision).not.toBe(before);
    const pod = await clusterOf(folder.path)
      .makeApiClient(CoreV1Api)
      .readNamespacedPod({ namespace: "default", name: "namzu-ws-fresh" });
    expect(pod.spec?.containers[0]?.env).toContainEqual({ name: "GREETING", value: "hi" });
    expect((await shell(service, "fresh", "cat file")).stdout).toBe("kept\n");
  });

  it("L16 finds a disk that is gone before it wakes the workspace, and uses an empty one only when told to", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    const { workspace } = await service.workspaces.openWorkspace({ workspaceId: "lost" });
    await shell(service, "lost", "echo kept > file");
    await service.workspaces.suspendWorkspace({ workspaceId: "lost" });
    const [claim = ""] = Object.keys(workspace?.identity?.claimUids ?? {});
    const core = clusterOf(folder.path).makeApiClient(CoreV1Api);
    await core.deleteNamespacedPersistentVolumeClaim({ namespace: "default", name: claim });

    const refused = await reasonOf(service.workspaces.resumeWorkspace({ workspaceId: "lost" }));
    expect(refused).toMatchObject({ reason: "WORKSPACE_REPLACED", metadata: { claim } });
    expect((await service.workspaces.getWorkspace({ workspaceId: "lost" })).workspace?.state).toBe(
      WorkspaceState.SUSPENDED,
    );
    const accepted = await service.workspaces.resumeWorkspace({ workspaceId: "lost", acceptReplacedDisk: true });
    expect(accepted.workspace?.identity?.claimUids[claim]).not.toBe(workspace?.identity?.claimUids[claim]);
    expect((await shell(service, "lost", "ls")).stdout).not.toContain("file");
    await service.workspaces.suspendWorkspace({ workspaceId: "lost" });
    await service.workspaces.resumeWorkspace({ workspaceId: "lost" });
  });

  it("L42 replaces a pod that ended by itself when the workspace is opened or resumed, and keeps its disk", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    await editTemplate(folder.path, "once", (pod) => {
      pod.restartPolicy = "Never";
    });
    const opened = await service.workspaces.openWorkspace({ workspaceId: "once", template: "once" });
    await shell(service, "once", "echo kept > file");
    await shell(service, "once", "setsid sh -c 'kill -TERM 1 || kill -TERM '$PPID >/dev/null 2>&1 &");
    await eventually(10_000, async () => {
      const { workspace } = await service.workspaces.getWorkspace({ workspaceId: "once" });
      return workspace?.state === WorkspaceState.NOT_READY ? workspace : undefined;
    });
    expect((await reasonOf(shell(service, "once", "true"))).reason).toBe("WORKSPACE_NOT_READY");
    const { workspace } = await service.workspaces.resumeWorkspace({ workspaceId: "once" });
    expect(workspace?.identity?.podUid).not.toBe(opened.workspace?.identity?.podUid);
    expect((await shell(service, "once", "cat file")).stdout).toBe("kept\n");
  });
});
