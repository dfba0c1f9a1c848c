import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AddressCuts, CannotCutAddressError, dropping } from "./address-cuts.ts";
import { agentPod, awaitReady, createPod, evalIn, ipOf, openTestCluster, type TestCluster } from "./testing/cluster.ts";
import { eventually } from "./testing/processes.ts";

const filters = () => execFileSync("tc", ["filter", "show", "dev", "lo", "egress"], { encoding: "utf8" });

/** Whether this machine can do it at all. */
async function isPossible(): Promise<boolean> {
  const cuts = await AddressCuts.open(async () => false);
  try {
    await (await cuts.cut("127.255.255.254"))();
    return true;
  } catch (error) {
    if (error instanceof CannotCutAddressError) return false;
    throw error;
  }
}
const possible = await isPossible();

describe.skipIf(!possible)("a pod's address that is cut (needs root, tc and its bpf classifier)", () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await openTestCluster();
  });
  afterAll(() => cluster.close());

  it("is reached by nobody, while the pod runs and its status says nothing of it, until it is mended", async () => {
    const volumes = [{ name: "shared", emptyDir: {} }];
    const volumeMounts = [{ name: "shared", mountPath: "/shared" }];
    await createPod(cluster, agentPod("lonely", { volumeMounts }, { volumes }));
    await createPod(cluster, agentPod("neighbour"));
    const [pod, neighbour] = [await awaitReady(cluster, "lonely"), await awaitReady(cluster, "neighbour")];
    // A connection from before, over which the pod speaks by itself once it finds the file `go`.
    await evalIn(
      pod,
      `const server = (await import("node:net")).createServer((socket) => {
      socket.on("error", () => undefined);
      socket.write("hello");
      const looking = setInterval(() => {
        if (!fs.existsSync("/shared/go")) return;
        clearInterval(looking);
        socket.write("again", () => fs.writeFileSync("/shared/spoke", ""));
      }, 10);
    });
    await new Promise((resolve) => server.listen(2000, process.env.HOLDFAST_AGENT_HOST, resolve))`,
    );
    const standing = connect(2000, ipOf(pod));
    const said: string[] = [];
    standing.setEncoding("utf8").on("data", (text: string) => said.push(text));
    await expect.poll(() => said.join("")).toBe("hello");

    const mend = await cluster.node.faults.cutAddress({ name: "lonely" });
    const shared = `${cluster.dataDir}/pods/${pod.metadata.uid}/volumes/shared`;
    const attempt = connect(1024, ipOf(pod));
    let reached = false;
    attempt.once("connect", () => {
      reached = true;
    });
    await writeFile(`${shared}/go`, "");
    expect(await eventually(() => existsSync(`${shared}/spoke`), 10_000)).toBe(true); // it lives, and has spoken
    expect(await evalIn(neighbour, "return 1")).toBe(1);
    expect([reached, said.join("")]).toEqual([false, "hello"]);
    attempt.destroy();

    await mend();
    await mend(); // a second time does nothing
    await expect.poll(() => said.join("")).toBe("helloagain");
    standing.destroy();
    expect(await evalIn(pod, "return 1")).toBe(1);
    expect(filters()).not.toContain(dropping(ipOf(pod)));
  });

  it("is mended when the node stops, and by the next node when it was killed", async () => {
    const own = await AddressCuts.open(async () => false);
    await own.cut("127.255.255.253");
    expect(filters()).toContain(dropping("127.255.255.253"));
    await own.close();
    expect(filters()).not.toContain(dropping("127.255.255.253"));

    const killed = await AddressCuts.open(async () => false);
    await killed.cut("127.255.255.252");
    await AddressCuts.open(async () => false);
    expect(filters()).toContain(dropping("127.255.255.252")); // another living node's
    await AddressCuts.open(async (address) => address === "127.255.255.252");
    expect(filters()).not.toContain(dropping("127.255.255.252"));
    await killed.close();
  });
});

describe("a machine that cannot cut an address", () => {
  it("says so, and does nothing", async () => {
    const cuts = await AddressCuts.open(async () => false);
    // No such thing as an address, so no program either: tc refuses it as it would for want of rights.
    await expect(cuts.cut("127.0.0.x")).rejects.toThrow(CannotCutAddressError);
  });
});
