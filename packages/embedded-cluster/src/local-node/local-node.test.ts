import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  agentPod,
  awaitGone,
  awaitReady,
  createClaim,
  createPod,
  deletePod,
  evalIn,
  openTestCluster,
  podWithDisk,
  type TestCluster,
} from "./testing/cluster.ts";

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await openTestCluster();
});
afterAll(() => cluster.close());

describe("a pod", () => {
  it("runs the agent with its token, without capabilities and unable to gain any", async () => {
    const made = await createPod(cluster, agentPod("plain"));
    const pod = await awaitReady(cluster, "plain");
    const seen = await evalIn(pod, 'return { env: process.env, status: fs.readFileSync("/proc/self/status", "utf8") }');
    expect(seen).toMatchObject({ env: { HOLDFAST_AGENT_TOKEN: pod.metadata.uid } });
    await deletePod(cluster, made);
    await awaitGone(cluster, "plain");
  });
});
