import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Logger, pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ApiServer, startApiServer } from "../api-server/api-server.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { follow } from "./follow.ts";
import type { Isolation } from "./isolation.ts";
import { recordOf } from "./json-shape.ts";
import { NodePaths } from "./node-paths.ts";
import { claims, refOf } from "./resources.ts";
import { createClaim, ensureNamespace, quiet } from "./testing/cluster.ts";
import { VolumeStore } from "./volume-store.ts";

let dataDir: string;
let paths: NodePaths;
let server: ApiServer;
let stopping: AbortController;
let following: Promise<void>;
let store: VolumeStore;

async function open(
  nodeUid = "node-1",
  storeOpenedAt?: number,
  isolation: Isolation = "none",
  { api = server.api, log = quiet }: { api?: ResourceApi; log?: Logger } = {},
): Promise<void> {
  stopping = new AbortController();
  const { signal } = stopping;
  store = new VolumeStore({ api, paths, isolation, nodeUid, storeOpenedAt, log, signal });
  following = follow(server.api, claims, store, signal, quiet);
}

function logInto(lines: unknown[]): Logger {
  return pino({ level: "warn" }, { write: (line) => lines.push(JSON.parse(line)) });
}

async function close(): Promise<void> {
  stopping.abort();
  await following;
  await store.idle();
}

/** Waits for the disk of the claim; its uid. */
async function bound(name: string): Promise<string> {
  const signal = AbortSignal.timeout(5_000);
  const held = await store.hold({ namespace: "default", name, scheduled: true }, () => undefined, signal);
  if (held === undefined) throw new Error(`claim ${name} was not bound`);
  held.release();
  const uid = held.path.split("/").at(-1) ?? "";
  expect(existsSync(paths.volume(uid))).toBe(true);
  return uid;
}

function read(name: string): Promise<KubeObject> {
  return server.api.get({ resource: claims, namespace: "default", name });
}

/** Waits until the claim's object is gone and the node has done its part. */
async function deleted(claim: KubeObject): Promise<void> {
  const gone = new AbortController();
  const list = await server.api.list(claims);
  await server.api.delete(refOf(claims, claim));
  for await (const event of server.api.watch(claims, list.resourceVersion, gone.signal))
    if (event.type === "DELETED" && event.object.metadata.uid === claim.metadata.uid) gone.abort();
}

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "holdfast-volumes-"));
  paths = new NodePaths(dataDir);
  for (const folder of [paths.volumes, paths.trash]) await mkdir(folder, { recursive: true });
  server = await startApiServer({ dataDir, port: 0, log: quiet });
  await ensureNamespace(server.api);
  await open();
});
afterEach(async () => {
  await close();
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe("a claim", () => {
  it("gets a folder of its own and is Bound with the capacity it asked for", async () => {
    await createClaim(server, "disk");
    const uid = await bound("disk");
    const claim = await read("disk");
    expect(claim.metadata.uid).toBe(uid);
    expect(recordOf(claim.spec).volumeName).toBe(`pvc-${uid}`);
    expect(claim.status).toMatchObject({
      phase: "Bound",
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
    });
    expect((await stat(paths.volume(uid))).mode & 0o777).toBe(0o700);
  });

  it.skipIf(process.geteuid?.() !== 0)(
    "whose folder a killed node had only just made becomes the pod's user's (needs root)",
    async () => {
      await close();
      const made = await createClaim(server, "disk");
      const path = paths.volume(made.metadata.uid ?? "");
      await mkdir(path);
      await writeFile(`${path}.claim.json.new`, "{");
      await open("node-1", undefined, "namespaces");
      await bound("disk");
      expect((await stat(path)).uid).toBe(1001);
      expect(existsSync(`${path}.claim.json.new`)).toBe(false);
    },
  );

  it("that is deleted takes its folder with it", async () => {
    await createClaim(server, "disk");
    const uid = await bound("disk");
    await writeFile(join(paths.volume(uid), "data"), "bytes");
    await deleted(await read("disk"));
    await close();
    expect(await readdir(paths.volumes)).toEqual([]);
    expect(await readdir(paths.trash)).toEqual([]);
    expect(existsSync(paths.claimRecord(uid))).toBe(false);
    await open();
  });

  it("that is deleted keeps its folder while a pod still holds it", async () => {
    await createClaim(server, "disk");
    const wanted = { namespace: "default", name: "disk", scheduled: true };
    const held = await store.hold(wanted, () => undefined, AbortSignal.timeout(5_000));
    store.onGone(await read("disk"));
    await store.idle();
    expect(existsSync(held?.path ?? "")).toBe(true);
    held?.release();
    await store.idle();
    expect(existsSync(held?.path ?? "")).toBe(false);
  });

  it("is given to no other pod while one whose object is gone may still write to it", async () => {
    await createClaim(server, "disk");
    const wanted = { namespace: "default", name: "disk", scheduled: false };
    const first = await store.hold(wanted, () => undefined, AbortSignal.timeout(5_000));
    first?.leave();
    const order: string[] = [];
    const waits = Promise.withResolvers<string>();
    const second = store.hold(wanted, waits.resolve, AbortSignal.timeout(5_000)).then((held) => {
      order.push("given");
      return held;
    });
    expect(await waits.promise).toContain("still used by a deleted pod");
    order.push("released");
    first?.release();
    expect((await second)?.path).toBe(first?.path);
    expect(order).toEqual(["released", "given"]);
  });

  it("whose folder is missing is Lost: an empty one is never put in its place", async () => {
    await createClaim(server, "disk");
    const uid = await bound("disk");
    await close();
    await rename(paths.volume(uid), join(dataDir, "taken-away"));
    await open();
    const signal = AbortSignal.timeout(5_000);
    const saysLost = await new Promise<string>((resolve) => {
      const onWait = (why: string) => why.includes("missing") && resolve(why);
      store.hold({ namespace: "default", name: "disk", scheduled: true }, onWait, signal);
    });
    expect(saysLost).toContain('"disk"');
    expect(recordOf((await read("disk")).status).phase).toBe("Lost");
    expect(existsSync(paths.volume(uid))).toBe(false);
  });
});

describe("a claim that is another's to provide for", () => {
  const made = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
  /** Everything that was queued before is done once a later claim is bound. */
  async function passedOver(uid: string): Promise<void> {
    await createClaim(server, "later");
    await bound("later");
    await store.idle();
    expect(existsSync(paths.volume(uid))).toBe(false);
    expect(existsSync(paths.claimRecord(uid))).toBe(false);
  }

  it.each([
    ["names a volume", { volumeName: "somebodys" }, /names the volume "somebodys"/],
    ["names a class", { storageClassName: "fast" }, /is of storage class "fast"/],
    ["wants no class", { storageClassName: "" }, /is of storage class ""/],
  ])("because it %s is left as it is, and a pod that waits for it is told why", async (_, more, why) => {
    const before = await createClaim(server, "disk", more);
    const wait = new AbortController();
    const told = await new Promise<string>((resolve) => {
      const onWait = (text: string) => !text.includes("not found") && resolve(text);
      void store.hold({ namespace: "default", name: "disk", scheduled: true }, onWait, wait.signal);
    });
    wait.abort();
    expect(told).toMatch(why);
    await passedOver(before.metadata.uid ?? "");
    expect(await read("disk")).toEqual(before);
  });

  it("is not called Lost when its own provider has bound it", async () => {
    const { metadata } = await createClaim(server, "disk", { volumeName: "somebodys", storageClassName: "fast" });
    const ref = { resource: claims, namespace: "default", name: "disk" };
    await server.api.patch(ref, "application/merge-patch+json", { status: made }, "status");
    await passedOver(metadata.uid ?? "");
    await close();
    await open();
    await createClaim(server, "after");
    await bound("after");
    expect((await read("disk")).status).toEqual(made);
  });

  it("because another was first to name its volume is left alone, in silence", async () => {
    await close();
    const { metadata } = await createClaim(server, "disk");
    const errors: unknown[] = [];
    const api = {
      ...server.api,
      // The other one's write comes between this node's look at the claim and its own write.
      patch: async (...[ref, type, body, subresource]: Parameters<ResourceApi["patch"]>) => {
        if (ref.name === "disk") await server.api.patch(ref, type, { spec: { volumeName: "somebodys" } });
        return server.api.patch(ref, type, body, subresource);
      },
    };
    await open("node-1", undefined, "none", { api, log: logInto(errors) });
    await passedOver(metadata.uid ?? "");
    expect(errors).toEqual([]);
    const claim = await read("disk");
    expect(recordOf(claim.spec).volumeName).toBe("somebodys");
    expect(claim.status).toEqual({ phase: "Pending" });
  });

  it("keeps the disk that an earlier release had given it", async () => {
    const { metadata } = await createClaim(server, "disk", { storageClassName: "fast" });
    await close();
    await mkdir(paths.volume(metadata.uid ?? ""));
    const ref = { resource: claims, namespace: "default", name: "disk" };
    await server.api.patch(ref, "application/merge-patch+json", { status: made }, "status");
    await open();
    expect(await bound("disk")).toBe(metadata.uid);
  });
});

describe("a folder whose claim is not listed at the start", () => {
  async function deletedWhileAway(): Promise<string> {
    await createClaim(server, "disk");
    const uid = await bound("disk");
    await close();
    await deleted(await read("disk"));
    return uid;
  }
  /** The first listing is over once a claim made after it is bound. */
  async function sorted(): Promise<void> {
    await createClaim(server, "later");
    await bound("later");
  }

  it("is removed where this very store had the claim: it was deleted while the node was away", async () => {
    const uid = await deletedWhileAway();
    await open();
    await sorted();
    expect(existsSync(paths.volume(uid))).toBe(false);
  });

  it("is kept where the store is another one", async () => {
    const uid = await deletedWhileAway();
    await open("node-of-another-store");
    await sorted();
    expect(existsSync(paths.volume(uid))).toBe(true);
  });

  it("is kept where the store is older than the claim: an earlier copy was put back", async () => {
    const uid = await deletedWhileAway();
    const record = { namespace: "default", name: "disk", store: "node-1", resourceVersion: "1000000000" };
    await writeFile(paths.claimRecord(uid), JSON.stringify(record));
    await open();
    await sorted();
    expect(existsSync(paths.volume(uid))).toBe(true);
  });

  it("is kept at every later start too, when the older copy has moved on past the claim", async () => {
    const uid = await deletedWhileAway();
    const ahead = server.registry.revision + 3;
    const record = { namespace: "default", name: "disk", store: "node-1", resourceVersion: String(ahead) };
    await writeFile(paths.claimRecord(uid), JSON.stringify(record));
    await open();
    await sorted();
    await createClaim(server, "more");
    await bound("more");
    expect(server.registry.revision).toBeGreaterThan(ahead);
    await close();
    await open();
    await createClaim(server, "last");
    await bound("last");
    expect(existsSync(paths.volume(uid))).toBe(true);
  });

  it("is kept where an older copy moved on past the claim before the first listing", async () => {
    const openedAt = server.registry.revision;
    const uid = await deletedWhileAway();
    await open("node-1", openedAt);
    await sorted();
    expect(existsSync(paths.volume(uid))).toBe(true);
  });

  it.each([
    ["nothing is written", undefined],
    ["the record is cut short", '{"namespace":"de'],
  ])("is kept where %s about it", async (_, text) => {
    const uid = await deletedWhileAway();
    await rm(paths.claimRecord(uid));
    if (text !== undefined) await writeFile(paths.claimRecord(uid), text);
    await open();
    await sorted();
    expect(existsSync(paths.volume(uid))).toBe(true);
  });
});
