import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ApiServer, startApiServer } from "../api-server/api-server.ts";
import { HttpResourceApi } from "../http-resource-api/http-resource-api.ts";
import { readKubeconfig } from "../http-resource-api/server-access.ts";
import { type LocalNode, startLocalNode } from "./local-node.ts";
import {
  awaitGone,
  awaitReady,
  containerOf,
  createClaim,
  createPod,
  deletePod,
  ensureNamespace,
  evalIn,
  podWithDisk,
  quiet,
  standIn,
} from "./testing/cluster.ts";

let dataDir: string;
let server: ApiServer;
let api: HttpResourceApi;
let node: LocalNode;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "holdfast-node-"));
  server = await startApiServer({ dataDir, port: 0, log: quiet });
  await ensureNamespace(server.api);
  api = new HttpResourceApi(readKubeconfig(server.kubeconfigPath));
  node = await startLocalNode({ api, dataDir: join(dataDir, "node-elsewhere"), agent: standIn, log: quiet });
});
afterEach(async () => {
  await node.stop();
  api.close();
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe("a node whose API server is reached over HTTP", () => {
  it("binds, runs and ends a pod with its disk", async () => {
    await createClaim({ api }, "disk");
    await createPod({ api }, podWithDisk("a", "disk"));
    const pod = await awaitReady({ api }, "a");
    expect(pod.spec).toMatchObject({ nodeName: node.name });
    expect(await evalIn(pod, "return sh('touch /workspace/kept; ls /workspace')")).toMatch(/kept/);
    await deletePod({ api }, pod);
    await awaitGone({ api }, "a");
  });

  it("keeps its pods running while the server is away, and then does what was asked meanwhile", async () => {
    await createClaim({ api }, "disk");
    await createPod({ api }, podWithDisk("a", "disk"));
    const pod = await awaitReady({ api }, "a");
    await server.stop();
    expect(await evalIn(pod, "return 1 + 1")).toBe(2);
    server = await startApiServer({ dataDir, port: 0, log: quiet }); // on the port that it had
    expect(containerOf(await awaitReady({ api }, "a", pod.metadata.uid))).toMatchObject({ restartCount: 0 });
    await deletePod({ api }, pod);
    await awaitGone({ api }, "a");
  });
});
