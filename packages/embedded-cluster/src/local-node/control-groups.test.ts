import { describe, expect, it } from "vitest";
import { ControlGroups, findHierarchies } from "./control-groups.ts";
import {
  agentPod,
  awaitGone,
  awaitPod,
  awaitReady,
  containerOf,
  createPod,
  deletePod,
  evalIn,
  isReady,
  openTestCluster,
} from "./testing/cluster.ts";

describe("where groups may be made", () => {
  it("is beside our own group in version 2, for a group with processes cannot limit its children", () => {
    const mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    expect(findHierarchies(mounts, "0::/user.slice/session-1.scope\n")).toEqual([
      { version: 2, folder: "/sys/fs/cgroup/user.slice" },
    ]);
    expect(findHierarchies(mounts, "0::/\n")).toEqual([{ version: 2, folder: "/sys/fs/cgroup" }]);
  });

  it("is below our own group in version 1, in each controller that limits something", () => {
    const mounts = [
      "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct",
      "32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
      "33 30 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids",
    ].join("\n");
    const own = "5:pids:/x\n4:memory:/box/1\n2:cpu,cpuacct:/\n0::/\n";
    expect(findHierarchies(mounts, own)).toEqual([
      { version: 1, folder: "/sys/fs/cgroup/cpu" },
      { version: 1, folder: "/sys/fs/cgroup/memory/box/1" },
    ]);
  });

  it("is below the mount where only a part of the hierarchy is mounted, as in a container", () => {
    const mounts = "32 30 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
    expect(findHierarchies(mounts, "4:memory:/docker/abc/inner\n")).toEqual([
      { version: 1, folder: "/sys/fs/cgroup/memory/inner" },
    ]);
  });

  it("is nowhere without control groups", () => {
    expect(findHierarchies("", "")).toEqual([]);
  });
});

const { enforced } = await ControlGroups.open("control-groups-test");

describe("limits", () => {
  it("are enforced or said not to be", async () => {
    const cluster = await openTestCluster();
    const said = cluster.node.relaxations.filter((sentence) => sentence.startsWith("Limits of "));
    const missing = [...(enforced.cpu ? [] : ["CPU"]), ...(enforced.memory ? [] : ["memory"])];
    for (const word of ["CPU", "memory"]) expect(said.join().includes(word)).toBe(missing.includes(word));
    await cluster.close();
  });

  it("never keep a pod from running", async () => {
    const cluster = await openTestCluster();
    const resources = { limits: { cpu: "2", memory: "1Gi", "ephemeral-storage": "1Gi" }, requests: { cpu: "100" } };
    await createPod(cluster, agentPod("limited", { resources }));
    await awaitReady(cluster, "limited");
    await cluster.close();
  });

  it.skipIf(!enforced.memory)(
    "of memory end a container that passes them: OOMKilled, and it is started again",
    async () => {
      const cluster = await openTestCluster();
      const resources = { limits: { memory: "128Mi" } };
      const made = await createPod(cluster, agentPod("greedy", { resources }));
      const pod = await awaitReady(cluster, "greedy");
      await evalIn(pod, "globalThis.all = []; setInterval(() => all.push(Buffer.alloc(2 ** 24, 1)), 1)");
      const again = await awaitPod(cluster, "greedy", (it) => isReady(it) && containerOf(it).restartCount === 1);
      expect(again?.metadata.uid).toBe(made.metadata.uid);
      expect(containerOf(again).lastTerminated).toMatchObject({ exitCode: 137, reason: "OOMKilled" });
      await deletePod(cluster, made);
      await awaitGone(cluster, "greedy");
      await cluster.close();
    },
  );

  it.skipIf(!enforced.cpu)("of processor time slow a container down", async () => {
    const cluster = await openTestCluster();
    await createPod(cluster, agentPod("throttled", { resources: { limits: { cpu: "200m" } } }));
    const pod = await awaitReady(cluster, "throttled");
    const spin =
      "const from = Date.now(); while (Date.now() - from < 2000); return process.cpuUsage(before).user / 1000";
    expect(await evalIn(pod, `const before = process.cpuUsage(); ${spin}`)).toBeLessThan(1_000);
    await cluster.close();
  });
});
