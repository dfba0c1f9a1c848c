import { existsSync, readFileSync } from "node:fs";
import { access, constants, mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recordOf } from "./json-shape.ts";
import { agentPod, conditionOf, evalIn, isReady, podWithDisk } from "./testing/cluster.ts";
import { HostProcess } from "./testing/host-process.ts";
import { eventually, processesWith } from "./testing/processes.ts";

/** In the freezer of version 1 a process is as one that waits in the kernel: SIGKILL does not end it. */
const freezer = "/sys/fs/cgroup/freezer";
const canFreeze = await access(join(freezer, "tasks"), constants.W_OK).then(
  () => process.geteuid?.() === 0,
  () => false,
);

describe.skipIf(!canFreeze)("a pod whose process nothing ends (needs root and the freezer of cgroup version 1)", () => {
  const group = join(freezer, `holdfast-test-${process.pid}`);
  const setState = (state: "FROZEN" | "THAWED") => writeFile(join(group, "freezer.state"), state);
  /** Freezes the agent of that pod. */
  const freeze = async (uid: string) => {
    for (const pid of processesWith(uid)) {
      const program = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""); // gone between two looks
      if (program.startsWith("/opt/holdfast/node")) await writeFile(join(group, "cgroup.procs"), String(pid));
    }
    await setState("FROZEN");
    const state = () => readFileSync(join(group, "freezer.state"), "utf8").trim();
    expect(await eventually(() => state() === "FROZEN", 5_000)).toBe(true);
  };
  let dataDir: string;
  let host: HostProcess | undefined;

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "holdfast-undying-"));
    await mkdir(group);
  });
  afterEach(async () => {
    await setState("THAWED");
    await host?.kill();
    expect(await eventually(() => processesWith(dataDir).length === 0, 5_000)).toBe(true);
    await rmdir(group);
    await rm(dataDir, { recursive: true, force: true });
  });

  it("keeps its disk, and holds up neither the node's start nor other pods, until it is gone", async () => {
    host = await HostProcess.start(dataDir);
    await host.call("createClaim", "disk");
    const made = await host.call("createPod", podWithDisk("frozen", "disk"));
    await evalIn(await host.call("awaitReady", "frozen"), 'fs.writeFileSync("/workspace/kept", "bytes")');
    const uid = made.metadata.uid ?? "none";
    await freeze(uid);
    await host.kill();

    host = await HostProcess.start(dataDir);
    expect(processesWith(uid).length).toBeGreaterThan(0);
    await host.call("createPod", agentPod("other"));
    await host.call("awaitReady", "other");
    const waiting = await host.call("read", "frozen");
    expect([isReady(waiting), recordOf(waiting?.status).podIP]).toEqual([false, undefined]);

    // Even when its object is taken away by force, the disk is nobody else's.
    await host.call("forceDelete", made);
    await host.call("createPod", podWithDisk("next", "disk"));
    const next = await host.call("awaitUnscheduled", "next");
    expect(conditionOf(next, "PodScheduled").message).toContain("still used by a deleted pod");

    await setState("THAWED");
    const pod = await host.call("awaitReady", "next");
    expect(processesWith(uid)).toEqual([]);
    expect(await evalIn(pod, 'return fs.readFileSync("/workspace/kept", "utf8")')).toBe("bytes");
    expect(await eventually(() => !existsSync(join(dataDir, "pods", uid)), 5_000)).toBe(true);
    await host.call("stop");
  }, 90_000);

  it("whose object was deleted while the node was away does not hold up its start", async () => {
    host = await HostProcess.start(dataDir);
    await host.call("createClaim", "disk");
    const made = await host.call("createPod", podWithDisk("frozen", "disk"));
    await host.call("awaitReady", "frozen");
    const uid = made.metadata.uid ?? "none";
    await freeze(uid);
    await host.call("forceDelete", made);
    await host.kill();

    host = await HostProcess.start(dataDir); // a bounded wait: five seconds
    await host.call("createPod", podWithDisk("next", "disk"));
    const next = await host.call("awaitUnscheduled", "next");
    expect(conditionOf(next, "PodScheduled").message).toContain("still used by a deleted pod");
    await setState("THAWED");
    await host.call("awaitReady", "next");
    expect(processesWith(uid)).toEqual([]);
    expect(await eventually(() => !existsSync(join(dataDir, "pods", uid)), 5_000)).toBe(true);
    await host.call("stop");
  }, 90_000);
});
