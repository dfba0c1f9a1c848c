import { chown, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { agentPod, evalIn, podWithDisk } from "./testing/cluster.ts";
import { HostProcess } from "./testing/host-process.ts";
import { eventually, processesWith } from "./testing/processes.ts";

const isRoot = process.geteuid?.() === 0;
const forbid = 'echo 0 >/proc/sys/user/max_user_namespaces && echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"';
const asNobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
/** A user namespace of the test's own, in which the kernel refuses all further ones. */
const withoutNamespaces = [...asNobody, ...["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"]];

describe.skipIf(!isRoot)("where the kernel refuses namespaces (needs root to set up)", () => {
  let dataDir: string;
  let host: HostProcess;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "holdfast-plain-"));
    await chown(dataDir, 65534, 65534);
    host = await HostProcess.start(dataDir, withoutNamespaces);
  }, 60_000); // three ways to run a pod are tried out, two of them in vain
  afterEach(async () => {
    await host.kill();
    await rm(dataDir, { recursive: true, force: true });
  });

  it("the node says so and pretends nothing", async () => {
    const { isolation, relaxations } = await host.call("describe");
    expect(isolation).toBe("none");
    expect(relaxations).toContainEqual(expect.stringContaining("The kernel refuses namespaces"));
  });

  it("a pod still runs, on its disk, without capabilities, and is ended whole", async () => {
    await host.call("createClaim", "disk");
    const env = [{ name: "ROOT", value: "/workspace/inner" }];
    const made = await host.call("createPod", podWithDisk("plain", "disk", { env }));
    const pod = await host.call("awaitReady", "plain");
    expect(await evalIn(pod, "return process.env.ROOT")).toMatch(new RegExp(`^${dataDir}/volumes/[^/]+/inner$`));
    await evalIn(pod, 'fs.mkdirSync(process.env.ROOT); fs.writeFileSync(process.env.ROOT + "/kept", "bytes")');
    const status = await evalIn(pod, 'return fs.readFileSync("/proc/self/status", "utf8")');
    expect(status).toMatch(/CapEff:\t0{16}\n/);
    expect(status).toMatch(/NoNewPrivs:\t1\n/);
    await evalIn(pod, 'sh("sleep 1000 >/dev/null 2>&1 &"); sh("setsid sleep 1000 >/dev/null 2>&1 &")');

    await host.call("deletePod", pod);
    await host.call("awaitGone", "plain");
    expect(processesWith(made.metadata.uid ?? "none")).toEqual([]);
    expect(await readdir(join(dataDir, "pods"))).toEqual([]);
    const [volume = ""] = await readdir(join(dataDir, "volumes"));
    expect(await readFile(join(dataDir, "volumes", volume.replace(".claim.json", ""), "inner/kept"), "utf8")).toBe(
      "bytes",
    );
  });

  it("what outlived a killed node is ended before its pod runs again: two never share a disk", async () => {
    const made = await host.call("createPod", agentPod("again"));
    const pod = await host.call("awaitReady", "again");
    const survivor = Number(await evalIn(pod, 'return sh("setsid sleep 1000 >/dev/null 2>&1 & echo $!")'));
    await host.kill();
    expect(await eventually(() => processesWith(made.metadata.uid ?? "none").length === 1, 2_000)).toBe(true);
    // In the user namespace of before: a real machine without namespaces has one for everybody.
    const besides = [...asNobody, "nsenter", "--user", "--preserve-credentials", "--target", `${survivor}`, "--"];
    host = await HostProcess.start(dataDir, besides);
    await host.call("awaitRestarts", { name: "again", count: 1 });
    await host.call("awaitReady", "again");
    expect(processesWith(made.metadata.uid ?? "none")).not.toContain(survivor);
    await host.call("deletePod", pod);
    await host.call("awaitGone", "again");
    expect(processesWith(made.metadata.uid ?? "none")).toEqual([]);
  });

  it("a pod's command dies with a node that is killed", async () => {
    const made = await host.call("createPod", agentPod("left"));
    await host.call("awaitReady", "left");
    await host.kill();
    expect(await eventually(() => processesWith(made.metadata.uid ?? "none").length === 0, 2_000)).toBe(true);
  });
});
