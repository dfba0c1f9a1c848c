import { readFile, writeFile } from "node:fs/promises";
import type { FaultAction, FaultVerb, RequestRecord } from "@holdfast/embedded-cluster";
import type { SandboxReading } from "@holdfast/workspace";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createSuspended, startTestCluster, type TestCluster, wishFor, within } from "./cluster.ts";

let record: RequestRecord | undefined;
let test: TestCluster;

beforeAll(async () => {
  test = await startTestCluster();
});
beforeEach(() => {
  test.faults.clear();
  asked();
});
afterAll(async () => {
  await test[Symbol.asyncDispose]();
});

/** Counts requests from now on. */
function asked(): void {
  record?.stop();
  record = test.faults.record({ by: "client" });
}

const verbs = (): string[] => (record?.requests ?? []).map((request) => request.verb);
const sent = (verb: FaultVerb): number => verbs().filter((one) => one === verb).length;

/** Gives the first request of this verb this fate. */
const once = (verb: FaultVerb, action: FaultAction): void => {
  test.faults.add({ match: { by: "client", verb }, action, count: 1 });
};

async function read(name: string): Promise<SandboxReading> {
  const reading = await test.cluster.readSandbox(name, within());
  if (reading === undefined) throw new Error(`${name} is not there`);
  return reading;
}

async function suspended(id: string): Promise<SandboxReading> {
  const asleep = await createSuspended(test.cluster, id);
  asked();
  return asleep;
}

const wake = (reading: SandboxReading, writtenBy: string) =>
  test.cluster.setMode({ reading, mode: "Running", writtenBy, volumeClaimUids: undefined, now: Date.now() }, within());

describe("L1 a lost reply", () => {
  it("of a POST that landed is unknown, was sent once, and its own mark is read back", async () => {
    const wish = await wishFor(test.cluster, "lost-post");
    once("create", { t: "applyThenDrop" });
    expect((await test.cluster.createSandbox(wish, within())).t).toBe("unknown");
    expect(sent("create")).toBe(1);
    expect((await read("namzu-ws-lost-post")).stamps).toMatchObject({
      createdBy: "creator",
      writtenBy: wish.writtenBy,
    });
  });

  it("of a POST that did not land is unknown just the same, and nothing stands", async () => {
    const wish = await wishFor(test.cluster, "lost-unapplied");
    once("create", { t: "dropUnapplied" });
    expect((await test.cluster.createSandbox(wish, within())).t).toBe("unknown");
    expect(sent("create")).toBe(1);
    expect(await test.cluster.readSandbox("namzu-ws-lost-unapplied", within())).toBeUndefined();
  });

  it("of a PATCH is unknown, was sent once, and a later write of the same reading is refused if it had landed", async () => {
    const asleep = await suspended("lost-patch");
    once("patch", { t: "applyThenDrop" });
    expect((await wake(asleep, "mine")).t).toBe("unknown");
    expect(sent("patch")).toBe(1);
    expect((await read(asleep.name)).stamps.writtenBy).toBe("mine");
    expect(await wake(asleep, "again")).toMatchObject({ t: "refused", why: "condition" });
  });

  it("of a PATCH that did not land leaves the later write of the same reading applicable", async () => {
    const asleep = await suspended("lost-patch-unapplied");
    once("patch", { t: "dropUnapplied" });
    expect((await wake(asleep, "mine")).t).toBe("unknown");
    expect(await wake(asleep, "again")).toMatchObject({ t: "applied" });
  });

  it("of a DELETE is unknown, and was sent once", async () => {
    const { name, uid, resourceVersion } = await suspended("lost-delete");
    once("delete", { t: "applyThenDrop" });
    expect((await test.cluster.deleteSandbox({ name, uid, resourceVersion }, within())).t).toBe("unknown");
    expect(sent("delete")).toBe(1);
  });

  it("of a read is read again", async () => {
    const asleep = await suspended("lost-read");
    once("get", { t: "dropUnapplied" });
    expect((await read(asleep.name)).uid).toBe(asleep.uid);
    expect(verbs()).toEqual(["get", "get"]);
  });
});

describe("a refusal of the server", () => {
  it("with 500 leaves a write unknown and sent once", async () => {
    const asleep = await suspended("five-hundred");
    once("patch", { t: "fail", code: 500, reason: "InternalError", message: "etcdserver: request timed out" });
    expect((await wake(asleep, "mine")).t).toBe("unknown");
    expect(sent("patch")).toBe(1);
  });

  it("L37 that ends the watches does not lose news: they are taken up again", async () => {
    const asleep = await suspended("watched");
    using changes = test.cluster.changes(asleep.name);
    using limit = within();
    await wake(asleep, "first");
    await changes.next(limit.signal);
    const expired = { t: "fail", code: 410, reason: "Expired", message: "too old" } as const;
    const rule = test.faults.add({ match: { by: "client", verb: "watch" }, action: expired });
    const second = await test.connect();
    using later = second.changes(asleep.name);
    await later.next(limit.signal); // of its first list
    rule.remove();
    await later.next(limit.signal); // of the list after the 410
    await second.close();
  });
});

describe("TLS", () => {
  it("is verified: another CA's server is sent nothing, and the error says why", async () => {
    const config = await readFile(test.kubeconfigPath, "utf8");
    const path = `${test.kubeconfigPath}.no-ca`;
    await writeFile(path, config.replace(/certificate-authority-data: .*/, "tls-server-name: localhost"));
    const stranger = await test.connect({ access: { kubeconfigPath: path } });
    await expect(stranger.readSandbox("namzu-ws-x", within(1_000))).rejects.toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
      message: expect.stringMatching(/certificate|self.signed/i),
    });
    expect(record?.requests).toEqual([]);
    await stranger.close();
  });

  it("and a wrong token is CLUSTER_FORBIDDEN", async () => {
    const config = await readFile(test.kubeconfigPath, "utf8");
    const path = `${test.kubeconfigPath}.no-token`;
    await writeFile(path, config.replace(/token: .*/, "token: wrong"));
    const stranger = await test.connect({ access: { kubeconfigPath: path } });
    await expect(stranger.readSandbox("namzu-ws-x", within())).rejects.toMatchObject({ reason: "CLUSTER_FORBIDDEN" });
    await stranger.close();
  });
});
