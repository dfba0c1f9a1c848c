import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type ApiServer, startApiServer } from "../api-server/api-server.ts";
import { EventRecorder } from "./event-recorder.ts";
import { events } from "./resources.ts";
import { agentPod, createPod, ensureNamespace, quiet } from "./testing/cluster.ts";

let dataDir: string;
let server: ApiServer;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "holdfast-events-"));
  server = await startApiServer({ dataDir, port: 0, log: quiet });
  await ensureNamespace(server.api);
});
afterEach(async () => {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const recorder = () => new EventRecorder(server.api, "kubelet", "local-node", quiet);
const stored = async () => (await server.api.list(events)).items;

it("counts the same event again instead of writing another, also after a restart of the node", async () => {
  const pod = await createPod(server, agentPod("p"));
  const first = recorder();
  first.record(pod, "Warning", "BackOff", "back-off 1s");
  await first.idle();
  const second = recorder();
  for (let i = 0; i < 3; i++) second.record(pod, "Warning", "BackOff", "back-off 1s");
  await second.idle();
  expect((await stored()).map((event) => event.count)).toEqual([4]);
});

it("keeps at most 500 events, the newest", async () => {
  const pod = await createPod(server, agentPod("p"));
  const one = recorder();
  for (let i = 0; i < 520; i++) {
    one.record(pod, "Normal", "Started", `message ${i}`);
    if (i % 100 === 99) await one.idle();
  }
  await one.idle();
  const messages = (await stored()).map((event) => event.message);
  expect(messages).toHaveLength(500);
  expect(messages).toContain("message 519");
  expect(messages).not.toContain("message 0");
});
