/**
 * Runs an API server and a node in a process of its own, so that tests can kill it or run it as another user. Takes
 * commands over IPC: `[id, command, argument]`, answered by `[id, result]` or `[id, undefined, message]`.
 *
 *   host.ts DATA_DIR
 */
import { startApiServer } from "../../api-server/api-server.ts";
import type { KubeObject } from "../../resource-api.ts";
import { startLocalNode } from "../local-node.ts";
import { claims, pods } from "../resources.ts";
import {
  awaitGone,
  awaitPod,
  awaitReady,
  conditionOf,
  containerOf,
  createClaim,
  createPod,
  deletePod,
  ensureNamespace,
  quiet,
  standIn,
} from "./cluster.ts";

const dataDir = process.argv[2] ?? "";
const server = await startApiServer({ dataDir, port: 0, log: quiet });
await ensureNamespace(server.api);
const node = await startLocalNode({ api: server.api, dataDir, agent: standIn, log: quiet });

const atStart = (await server.api.list(pods)).items;

const commands = {
  /** The pod as it was when the node had just started. */
  readAtStart: async (name: string) => atStart.find((pod) => pod.metadata.name === name),
  describe: async () => ({ isolation: node.isolation, relaxations: node.relaxations }),
  createPod: (pod: KubeObject) => createPod(server, pod),
  listClaims: async () => (await server.api.list(claims)).items,
  deleteClaim: (name: string) => server.api.delete({ resource: claims, namespace: "default", name }),
  createClaim: (name: string) => createClaim(server, name),
  awaitReady: (name: string) => awaitReady(server, name),
  awaitRestarts: ({ name, count }: { name: string; count: number }) =>
    awaitPod(server, name, (pod) => containerOf(pod).restartCount === count),
  deletePod: (pod: KubeObject) => deletePod(server, pod),
  /** Takes the object away at once, whatever its processes do. */
  forceDelete: (pod: KubeObject) => deletePod(server, pod, { gracePeriodSeconds: 0 }),
  awaitUnscheduled: (name: string) =>
    awaitPod(server, name, (pod) => conditionOf(pod, "PodScheduled").status === "False"),
  read: (name: string) => awaitPod(server, name, () => true),
  awaitGone: (name: string) => awaitGone(server, name),
  stop: async () => {
    await node.stop();
    await server.stop();
  },
};
export type HostCommands = typeof commands;

process.on("message", async ([id, command, argument]: [number, keyof HostCommands, never]) => {
  try {
    process.send?.([id, await commands[command](argument)]);
  } catch (error) {
    process.send?.([id, undefined, String(error)]);
  }
});
process.on("disconnect", () => process.exit(0)); // the test run ended
process.send?.("ready");
