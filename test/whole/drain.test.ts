import { describe, expect, it } from "vitest";
import { dataFolder, reasonOf, shell, startCluster, startServiceOn } from "./harness.ts";

describe("SIGTERM", () => {
  it("L44 lets a stream go by name and ends no program: another process delivers every byte of it, once", async () => {
    await using folder = await dataFolder();
    await using cluster = await startCluster(folder.path);
    const first = await startServiceOn(cluster.flags);
    await first.workspaces.openWorkspace({ workspaceId: "w" });
    const command = {
      workspaceId: "w",
      executionId: "long",
      command: "sh",
      args: ["-c", "for i in $(seq 60); do echo $i; sleep 0.05; done"],
    };
    let delivered = 0;
    const stream = (async () => {
      for await (const { event } of first.executions.execute(command)) {
        if (event.case !== "output") continue;
        delivered += event.value.data.length;
        // Ctrl-C reaches the launcher and the service both: the second signal changes nothing.
        if (first.child.kill("SIGTERM")) first.child.kill("SIGINT");
      }
    })();
    const ended = await reasonOf(stream);
    expect(ended).toMatchObject({ reason: "EXECUTION_DETACHED", code: "Unknown", metadata: { execution_id: "long" } });
    expect(ended.metadata.next_offset).toBe(String(delivered));
    expect(await first.stop()).toBe(0);

    await using second = await startServiceOn(cluster.flags);
    let text = "";
    let attached: boolean | undefined;
    for await (const { event } of second.executions.execute(command)) {
      if (event.case === "started") attached = event.value.attached;
      if (event.case === "output") text += Buffer.from(event.value.data).toString("utf8");
    }
    expect(attached).toBe(true);
    expect(text).toBe(Array.from({ length: 60 }, (_, at) => `${at + 1}\n`).join(""));
  });

  it("refuses new calls with SERVICE_DRAINING while a short call finishes, then exits with 0", async () => {
    await using folder = await dataFolder();
    await using cluster = await startCluster(folder.path);
    const service = await startServiceOn(cluster.flags);
    await service.workspaces.openWorkspace({ workspaceId: "w" });
    const short = shell(service, "w", "echo began > began; sleep 1; echo done");
    while ((await shell(service, "w", "cat began 2>/dev/null")).code !== 0);
    service.child.kill("SIGTERM");
    const refused = await (async () => {
      for (;;) {
        const failure = await service.workspaces.getWorkspace({ workspaceId: "w" }).then(
          () => undefined,
          (error: unknown) => reasonOf(Promise.reject(error)),
        );
        if (failure) return failure;
      }
    })();
    expect(refused).toMatchObject({ reason: "SERVICE_DRAINING", code: "Unavailable" });
    expect((await short).stdout).toBe("done\n");
    expect(await service.stop()).toBe(0);
  });
});
