import { randomUUID } from "node:crypto";
import { sandboxNameOf } from "@holdfast/contract";
import type { DeleteWish, SandboxReading, WriteEnding } from "@holdfast/workspace";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { awaitPods, createSuspended, startTestCluster, type TestCluster, wishFor, within } from "./cluster.ts";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(async () => {
  await test[Symbol.asyncDispose]();
});

/** A test that is tried again must not meet what its first run left. */
const fresh = (id: string): string => `${id}-${randomUUID().slice(0, 8)}`;

async function create(id: string): Promise<SandboxReading> {
  const ending = await test.cluster.createSandbox(await wishFor(test.cluster, id), within());
  if (ending.t !== "applied") throw new Error(`not created: ${ending.t}`);
  return ending.value;
}

const setMode = (reading: SandboxReading, mode: "Running" | "Suspended", writtenBy: string = randomUUID()) =>
  test.cluster.setMode({ reading, mode, writtenBy, volumeClaimUids: undefined, now: Date.now() }, within());

async function read(name: string): Promise<SandboxReading> {
  using limit = within();
  const reading = await test.cluster.readSandbox(name, limit);
  if (reading === undefined) throw new Error(`${name} is not there`);
  return reading;
}

const refusedAsCondition = { t: "refused", why: "condition" };

/** A write that the controller's own writes may refuse as a condition, composed again from a fresh reading each time. */
async function untilApplied<Value>(write: () => Promise<WriteEnding<Value>>): Promise<Value> {
  for (;;) {
    const ending = await write();
    if (ending.t === "applied") return ending.value;
    expect(ending).toMatchObject(refusedAsCondition);
  }
}

async function deleted(name: string): Promise<DeleteWish> {
  let wish: DeleteWish | undefined;
  await untilApplied(async () => {
    const { uid, resourceVersion } = await read(name);
    wish = { name, uid, resourceVersion };
    return await test.cluster.deleteSandbox(wish, within());
  });
  if (wish === undefined) throw new Error("nothing was deleted");
  return wish;
}

describe("against an API server and a controller", () => {
  it("a workspace is created, suspended with its disk kept, woken and deleted, news waking every wait", async () => {
    const id = fresh("whole");
    const created = await create(id);
    const claim = `workspace-namzu-ws-${id}`;
    expect(created).toMatchObject({
      name: `namzu-ws-${id}`,
      mode: "Running",
      template: "default",
      disk: { usable: true, root: "/workspace", entries: ["workspace"] },
      stamps: {
        createdBy: "creator",
        modeChangedAt: undefined,
        podTemplateHash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
      lacks: { annotations: false, mode: false },
    });
    const [first] = await awaitPods(test.cluster, created, (pods) => pods.some(({ ready }) => ready));
    expect(first).toMatchObject({ name: created.name, phase: "Running", deleting: false, problem: undefined });
    expect(first?.ip).toMatch(/^127\./);
    const { uids } = await test.cluster.readClaims(created, within());
    expect(Object.keys(uids)).toEqual([claim]);

    const suspended = await untilApplied(async () => {
      const reading = await read(created.name);
      const wish = { reading, mode: "Suspended" as const, writtenBy: "w-1", volumeClaimUids: uids, now: Date.now() };
      return await test.cluster.setMode(wish, within());
    });
    expect(suspended).toMatchObject({ mode: "Suspended", uid: created.uid });
    await awaitPods(test.cluster, created, (pods) => pods.length === 0);
    const asleep = await read(created.name);
    expect(asleep.stamps).toMatchObject({
      writtenBy: "w-1",
      volumeClaimUids: `${claim}=${uids[claim]}`,
      modeChangedAt: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
    });

    const woken = await untilApplied(async () => setMode(await read(created.name), "Running"));
    expect(woken).toMatchObject({ mode: "Running", uid: created.uid });
    const [second] = await awaitPods(test.cluster, created, (pods) => pods.some(({ ready }) => ready));
    expect(second?.uid).not.toBe(first?.uid);
    expect(await test.cluster.readClaims(created, within())).toEqual({ uids, lost: [] });

    const gone = await deleted(created.name);
    await awaitPods(test.cluster, created, (pods) => pods.length === 0);
    const left = async () => await test.cluster.readRemains({ ...gone, entries: ["workspace"] }, within());
    using changes = test.cluster.changes(created.name);
    using limit = within();
    for (let remains = await left(); remains.sandbox || remains.claims.length > 0; remains = await left()) {
      // Claims are not watched: the object goes last, and that is.
      if (remains.sandbox) await changes.next(limit.signal);
    }
    expect(await left()).toEqual({ sandbox: false, pods: [], claims: [] });
  });

  it("a second POST of a name finds that something stands", async () => {
    const id = fresh("twice");
    await create(id);
    const wish = { ...(await wishFor(test.cluster, id)), createdBy: "other" };
    expect(await test.cluster.createSandbox(wish, within())).toEqual({ t: "exists" });
    expect((await read(sandboxNameOf(wish.id))).stamps.createdBy).toBe("creator");
  });

  it("L24 two wakes composed from one reading: the second is refused as a condition and changes nothing", async () => {
    const { name } = await createSuspended(test.cluster, fresh("raced"));
    // The controller writes too, between the reading and both wakes: then neither is applied, and a later reading decides.
    const wakes = async () => {
      const asleep = await read(name);
      const endings = await Promise.all([setMode(asleep, "Running", "one"), setMode(asleep, "Running", "two")]);
      for (const ending of endings) if (ending.t !== "applied") expect(ending).toMatchObject(refusedAsCondition);
      return endings;
    };
    let [one, two] = await wakes();
    while (one.t !== "applied" && two.t !== "applied") [one, two] = await wakes();
    expect([one, two].filter(({ t }) => t === "applied")).toHaveLength(1);
    expect((await read(name)).stamps.writtenBy).toBe(one.t === "applied" ? "one" : "two");
  });

  it("L33 a delete under an older resourceVersion is refused, and one of another uid too", async () => {
    const created = await createSuspended(test.cluster, fresh("kept"));
    await untilApplied(async () => setMode(await read(created.name), "Running"));
    const current = await read(created.name);
    const stale = { name: created.name, uid: created.uid, resourceVersion: created.resourceVersion };
    expect(await test.cluster.deleteSandbox(stale, within())).toMatchObject({ t: "refused", why: "condition" });
    const other = {
      name: created.name,
      uid: randomUUID() as typeof created.uid,
      resourceVersion: current.resourceVersion,
    };
    expect(await test.cluster.deleteSandbox(other, within())).toMatchObject({ t: "refused", why: "condition" });
    expect((await read(created.name)).deleting).toBe(false);
  });

  it("writes to what is not there are absent", async () => {
    const created = await create(fresh("brief"));
    const again = await deleted(created.name);
    const { name } = created;
    using changes = test.cluster.changes(name);
    using limit = within();
    while ((await test.cluster.readSandbox(name, limit)) !== undefined) await changes.next(limit.signal);
    expect(await setMode(created, "Suspended")).toMatchObject({ t: "refused", why: "absent" });
    expect(await test.cluster.deleteSandbox(again, within())).toMatchObject({ t: "refused", why: "absent" });
  });

  it("lists workspaces in pages, and says of an old token that it is expired", async () => {
    const ids = ["page-a", "page-b", "page-c"].map(fresh);
    for (const id of ids) await create(id);
    const first = await test.cluster.listSandboxes({ limit: 2, continueToken: undefined }, within());
    expect(first.sandboxes).toHaveLength(2);
    expect(first.continueToken).toBeDefined();
    const names: string[] = [];
    let token: string | undefined;
    do {
      const page = await test.cluster.listSandboxes({ limit: 2, continueToken: token }, within());
      names.push(...page.sandboxes.map(({ name }) => name));
      token = page.continueToken;
    } while (token !== undefined);
    expect(names).toEqual(expect.arrayContaining(ids.map((id) => `namzu-ws-${id}`)));
    expect(new Set(names).size).toBe(names.length);
    const old = test.cluster.listSandboxes({ limit: 2, continueToken: "no-token-of-yours" }, within());
    await expect(old).rejects.toMatchObject({ reason: "PAGE_TOKEN_EXPIRED" });
  });

  it("reports no warning of its own", () => {
    expect(test.warnings).toEqual([]);
  });
});
