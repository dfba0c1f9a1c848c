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

/** A write that the controller's own writes may refuse as a condition, composed again from a fresh reading each time. */
async function untilApplied<Value>(write: () => Promise<WriteEnding<Value>>): Promise<Value> {
  for (;;) {
    const ending = await write();
    if (ending.t === "applied") return ending.value;
    expect(ending).toMatchObject({ t: "refused", why: "condition" });
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
    const created = await create("whole");
    expect(created).toMatchObject({
      name: "namzu-ws-whole",
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
    expect(first).toMatchObject({ name: "namzu-ws-whole", phase: "Running", deleting: false, problem: undefined });
    expect(first?.ip).toMatch(/^127\./);
    const { uids } = await test.cluster.readClaims(created, within());
    expect(Object.keys(uids)).toEqual(["workspace-namzu-ws-whole"]);

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
      volumeClaimUids: `workspace-namzu-ws-whole=${uids["workspace-namzu-ws-whole"]}`,
      modeChangedAt: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
    });

    const woken = await setMode(asleep, "Running");
    expect(woken).toMatchObject({ t: "applied", value: { mode: "Running" } });
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
    await create("twice");
    const wish = { ...(await wishFor(test.cluster, "twice")), createdBy: "other" };
    expect(await test.cluster.createSandbox(wish, within())).toEqual({ t: "exists" });
    expect((await read(sandboxNameOf(wish.id))).stamps.createdBy).toBe("creator");
  });

  it("L24 two wakes composed from one reading: the second is refused as a condition and changes nothing", async () => {
    const asleep = await createSuspended(test.cluster, "raced");
    const [one, two] = await Promise.all([setMode(asleep, "Running", "one"), setMode(asleep, "Running", "two")]);
    expect([one, two].filter(({ t }) => t === "applied")).toHaveLength(1);
    expect([one, two].find(({ t }) => t !== "applied")).toMatchObject({ t: "refused", why: "condition" });
    const winner = one.t === "applied" ? "one" : "two";
    expect((await read(asleep.name)).stamps.writtenBy).toBe(winner);
  });

  it("L33 a delete under an older resourceVersion is refused, and one of another uid too", async () => {
    const created = await createSuspended(test.cluster, "kept");
    await setMode(created, "Running");
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
    const created = await create("brief");
    const again = await deleted(created.name);
    const { name } = created;
    using changes = test.cluster.changes(name);
    using limit = within();
    while ((await test.cluster.readSandbox(name, limit)) !== undefined) await changes.next(limit.signal);
    expect(await setMode(created, "Suspended")).toMatchObject({ t: "refused", why: "absent" });
    expect(await test.cluster.deleteSandbox(again, within())).toMatchObject({ t: "refused", why: "absent" });
  });

  it("lists workspaces in pages, and says of an old token that it is expired", async () => {
    for (const id of ["page-a", "page-b", "page-c"]) await create(id);
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
    expect(names).toEqual(expect.arrayContaining(["namzu-ws-page-a", "namzu-ws-page-b", "namzu-ws-page-c"]));
    expect(new Set(names).size).toBe(names.length);
    const old = test.cluster.listSandboxes({ limit: 2, continueToken: "no-token-of-yours" }, within());
    await expect(old).rejects.toMatchObject({ reason: "PAGE_TOKEN_EXPIRED" });
  });

  it("reports no warning of its own", () => {
    expect(test.warnings).toEqual([]);
  });
});
