import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTestServer } from "../api-server/testing/test-server.ts";
import type { ResourceApi } from "../resource-api.ts";
import { follow } from "./follow.ts";
import type { ProcessTools } from "./left-over.ts";
import { LeftOvers } from "./left-overs.ts";
import { NodePaths } from "./node-paths.ts";
import { claims } from "./resources.ts";
import { claim, ensureNamespace, quiet } from "./testing/cluster.ts";
import { VolumeStore } from "./volume-store.ts";

/** Processes that neither a signal nor time ends, as one that waits for a device that does not answer. */
function undying() {
  const killed = Promise.withResolvers<number>();
  let runs = true;
  const die = () => {
    runs = false;
  };
  const tools: ProcessTools = {
    stillRuns: async () => runs,
    kill: (pid) => killed.resolve(pid),
    endMarked: async () => true,
  };
  return { tools, killed: killed.promise, die };
}

describe("a process of the node's earlier life that does not end, killed or not,", () => {
  let dataDir: string;
  let api: ResourceApi;
  let paths: NodePaths;
  let volumes: VolumeStore;
  let diskUid: string;
  const closing: (() => Promise<unknown>)[] = [];
  const stopping = { controller: new AbortController() };

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "holdfast-undying-"));
    const server = await openTestServer({ dataDir });
    closing.push(() => server.server.stop());
    api = server.server.api;
    await ensureNamespace(api);
    paths = new NodePaths(dataDir);
    stopping.controller = new AbortController();
    const { signal } = stopping.controller;
    volumes = new VolumeStore({ api, paths, isolation: "none", nodeUid: "node", log: quiet, signal });
    for (const folder of [paths.pods, paths.volumes, paths.trash, paths.logs]) await mkdir(folder, { recursive: true });
    const made = await api.create(claims, "default", claim("disk"));
    diskUid = made.metadata.uid ?? "";
  });
  afterEach(async () => {
    stopping.controller.abort();
    await volumes.idle();
    for (const close of closing.splice(0)) await close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const leaveRecord = async (podUid: string) => {
    const record = { pid: 4242, startTicks: "1", bootId: "b", isGroup: false, disks: [diskUid] };
    await mkdir(join(paths.containers(podUid), "agent"), { recursive: true });
    await writeFile(paths.processRecord(podUid, "agent"), JSON.stringify(record));
  };
  const hold = (signal: AbortSignal, onWait: (why: string) => void = () => undefined) =>
    volumes.hold({ namespace: "default", name: "disk", scheduled: false }, onWait, signal);

  it("is killed, holds nothing up that is not its own, and keeps its disk to itself until it is gone", async () => {
    await leaveRecord("old-pod");
    const { tools, killed, die } = undying();
    const { signal } = stopping.controller;
    const leftOvers = await LeftOvers.find({ paths, volumes, log: quiet }, signal, tools);
    const following = follow(api, claims, volumes, signal, quiet);
    expect(leftOvers.has("old-pod")).toBe(true);
    expect(await leftOvers.gone("another-pod")).toBe(true); // nobody else waits for it
    expect(await killed).toBe(4242);

    const said: string[] = [];
    const wanted = hold(signal, (why) => said.push(why));
    let given = false;
    wanted.then(() => {
      given = true;
    });
    await expect.poll(() => said.at(-1)).toMatch(/still used by a deleted pod/);
    expect([given, leftOvers.has("old-pod")]).toEqual([false, true]);

    die();
    expect(await leftOvers.gone("old-pod")).toBe(true);
    const held = await wanted;
    expect(held?.uid).toBe(diskUid);
    held?.release();
    stopping.controller.abort();
    await following;
  });

  it("is given up by a node that stops, which then says that it may still run", async () => {
    await leaveRecord("old-pod");
    const { tools, killed } = undying();
    const leftOvers = await LeftOvers.find({ paths, volumes, log: quiet }, stopping.controller.signal, tools);
    await killed;
    const gone = leftOvers.gone("old-pod");
    stopping.controller.abort();
    expect(await gone).toBe(false);
    expect(leftOvers.has("old-pod")).toBe(true);
  });

  it("keeps a deleted claim's disk from being removed until it is gone", async () => {
    const { signal } = stopping.controller;
    const first = new AbortController();
    const following = follow(api, claims, volumes, first.signal, quiet);
    (await hold(signal))?.release(); // so the disk is there
    first.abort();
    await following;
    await api.delete({ resource: claims, namespace: "default", name: "disk" });

    await leaveRecord("old-pod");
    const { tools, die } = undying();
    const wish = { api, paths, isolation: "none", nodeUid: "node", log: quiet, signal } as const;
    volumes = new VolumeStore(wish);
    const leftOvers = await LeftOvers.find({ paths, volumes, log: quiet }, signal, tools);
    const list = await api.list(claims);
    await volumes.onList(list.items, list.resourceVersion);
    await volumes.idle();
    expect(await exists(paths.volume(diskUid))).toBe(true);
    die();
    await leftOvers.gone("old-pod");
    await volumes.idle();
    expect(await exists(paths.volume(diskUid))).toBe(false);
  });

  it("counts as running where nobody can tell", async () => {
    await leaveRecord("old-pod");
    const blind: ProcessTools = { ...undying().tools, stillRuns: async () => Promise.reject(new Error("EMFILE")) };
    const leftOvers = await LeftOvers.find({ paths, volumes, log: quiet }, stopping.controller.signal, blind);
    const gone = leftOvers.gone("old-pod");
    stopping.controller.abort();
    expect(await gone).toBe(false);
  });
});

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
