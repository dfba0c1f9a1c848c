import { chown, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stopGraceDefaultMs } from "./local-node.ts";
import {
  agentPod,
  awaitGone,
  awaitPod,
  awaitReady,
  containerOf,
  createClaim,
  createPod,
  deletePod,
  evalIn,
  ipOf,
  isReady,
  openTestCluster,
  podWithDisk,
} from "./testing/cluster.ts";
import { HostProcess } from "./testing/host-process.ts";
import { eventually, processesWith } from "./testing/processes.ts";

const isRoot = process.geteuid?.() === 0;
const ways = [
  ["root", [] as readonly string[]],
  ["an unprivileged user", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]],
] as const;

describe("a node that is killed", () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "holdfast-death-"));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  it.skipIf(!isRoot).each(ways)(
    "as %s takes every process of its pods with it (needs root to set up)",
    async (_, launcher) => {
      if (launcher.length > 0) await chown(dataDir, 65534, 65534);
      const host = await HostProcess.start(dataDir, launcher);
      const made = await host.call("createPod", agentPod("left", { env: [{ name: "IGNORE_TERM", value: "1" }] }));
      const pod = await host.call("awaitReady", "left");
      await evalIn(pod, 'sh("setsid sleep 1000 >/dev/null 2>&1 &"); sh("(sleep 1000 &) >/dev/null 2>&1")');
      const uid = made.metadata.uid ?? "none";
      expect(processesWith(uid).length).toBeGreaterThanOrEqual(5); // launcher, PID 1, agent, two sleeps
      await host.kill();
      expect(await eventually(() => processesWith(uid).length === 0, 2_000)).toBe(true);
    },
  );

  it("runs the same pod again when it is started again, with the same disk and restartCount 1", async () => {
    let host = await HostProcess.start(dataDir);
    await host.call("createClaim", "disk");
    const made = await host.call("createPod", podWithDisk("again", "disk"));
    await evalIn(await host.call("awaitReady", "again"), 'fs.writeFileSync("/workspace/kept", "bytes")');
    await host.kill();
    host = await HostProcess.start(dataDir);
    const then = await host.call("readAtStart", "again");
    expect(isReady(then) && containerOf(then).restartCount === 0).toBe(false); // nothing runs yet: nothing is ready
    await host.call("awaitRestarts", { name: "again", count: 1 });
    const pod = await host.call("awaitReady", "again");
    expect(pod.metadata.uid).toBe(made.metadata.uid);
    expect(containerOf(pod).lastTerminated).toMatchObject({ exitCode: 137, reason: "ContainerStatusUnknown" });
    expect(await evalIn(pod, 'return fs.readFileSync("/workspace/kept", "utf8")')).toBe("bytes");
    await host.call("stop");
    await host.kill();
  });
});

describe("a node that is stopped", () => {
  it("ends its pods and keeps their objects, and runs them again when it starts", async () => {
    const cluster = await openTestCluster();
    await createClaim(cluster, "disk");
    const made = await createPod(cluster, podWithDisk("kept", "disk"));
    const first = await awaitReady(cluster, "kept");
    await evalIn(first, 'fs.writeFileSync("/workspace/kept", "bytes")');
    await cluster.node.stop();
    expect(processesWith(made.metadata.uid ?? "none")).toEqual([]);
    const stopped = await awaitPod(cluster, "kept", () => true);
    expect(isReady(stopped)).toBe(false); // what does not run is not called ready
    await cluster.restartNode();
    const second = await awaitReady(cluster, "kept");
    expect(second.metadata.uid).toBe(made.metadata.uid);
    expect(containerOf(second)).toMatchObject({ restartCount: 1, lastTerminated: { exitCode: 0 } });
    expect(await evalIn(second, 'return fs.readFileSync("/workspace/kept", "utf8")')).toBe("bytes");
    await cluster.close();
  });

  it("kills what ignores TERM after five seconds at most, or what it is given, whatever the pod's own grace", async () => {
    expect(stopGraceDefaultMs).toBe(5_000);
    const cluster = await openTestCluster({ stopGraceMs: 300 });
    const env = [{ name: "IGNORE_TERM", value: "1" }];
    const made = await createPod(cluster, agentPod("deaf", { env }, { terminationGracePeriodSeconds: 600 }));
    await awaitReady(cluster, "deaf");
    const began = Date.now();
    await cluster.node.stop();
    expect(Date.now() - began).toBeGreaterThanOrEqual(300);
    expect(Date.now() - began).toBeLessThan(4_000);
    expect(processesWith(made.metadata.uid ?? "none")).toEqual([]);
    await cluster.close();
  });
});

describe("two nodes on one machine", () => {
  it("give out different addresses and leave each other's pods alone", async () => {
    const [left, right] = await Promise.all([openTestCluster(), openTestCluster()]);
    await Promise.all([createPod(left, agentPod("same")), createPod(right, agentPod("same"))]);
    const [one, other] = await Promise.all([awaitReady(left, "same"), awaitReady(right, "same")]);
    expect(ipOf(one).split(".").slice(0, 3)).not.toEqual(ipOf(other).split(".").slice(0, 3));
    await left.close();
    expect(await evalIn(other, "return process.env.HOLDFAST_AGENT_TOKEN")).toBe(other.metadata.uid);
    await right.close();
  });
});

describe("an emptyDir", () => {
  it("outlives its container's restarts and the node's, and goes with the pod", async () => {
    const cluster = await openTestCluster();
    const volumeMounts = [{ name: "state", mountPath: "/var/lib/holdfast-agent" }];
    const volumes = [{ name: "state", emptyDir: {} }];
    await createPod(cluster, agentPod("stateful", { volumeMounts }, { volumes }));
    const first = await awaitReady(cluster, "stateful");
    await evalIn(first, 'fs.appendFileSync("/var/lib/holdfast-agent/fence", "1")');
    await evalIn(first, "setImmediate(() => process.exit(3))");
    const second = await awaitPod(cluster, "stateful", (pod) => isReady(pod) && containerOf(pod).restartCount === 1);
    if (second !== undefined) await evalIn(second, 'fs.appendFileSync("/var/lib/holdfast-agent/fence", "2")');
    await cluster.restartNode();
    const third = await awaitReady(cluster, "stateful", first.metadata.uid);
    expect(await evalIn(third, 'return fs.readFileSync("/var/lib/holdfast-agent/fence", "utf8")')).toBe("12");
    await deletePod(cluster, third);
    await awaitGone(cluster, "stateful");
    await createPod(cluster, agentPod("stateful", { volumeMounts }, { volumes }));
    const next = await awaitReady(cluster, "stateful");
    expect(await evalIn(next, 'return fs.readdirSync("/var/lib/holdfast-agent")')).toEqual([]);
    await cluster.close();
  });
});

describe("many pods at once", () => {
  it("start quickly and leave no process, mount, folder, log or descriptor", async () => {
    const cluster = await openTestCluster();
    const warm = await createPod(cluster, agentPod("warm"));
    await awaitReady(cluster, "warm");
    await deletePod(cluster, warm);
    await awaitGone(cluster, "warm");
    const descriptors = (await readdir("/proc/self/fd")).length;
    const mounts = await readFile("/proc/self/mountinfo", "utf8");

    const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    const began = Date.now();
    const made = await Promise.all(names.map((name) => createPod(cluster, agentPod(name))));
    await Promise.all(names.map((name) => awaitReady(cluster, name)));
    expect(Date.now() - began).toBeLessThan(15_000);
    await Promise.all(made.map((pod) => deletePod(cluster, pod)));
    await Promise.all(names.map((name) => awaitGone(cluster, name)));

    for (const pod of made) expect(processesWith(pod.metadata.uid ?? "none")).toEqual([]);
    expect(await readdir(`${cluster.dataDir}/pods`)).toEqual([]);
    expect(await readdir(`${cluster.dataDir}/logs`)).toEqual([]);
    expect(await readFile("/proc/self/mountinfo", "utf8")).toBe(mounts);
    expect((await readdir("/proc/self/fd")).length).toBeLessThanOrEqual(descriptors);
    await cluster.close();
  });
});
