import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestServer, podObject, podsPath, type TestServer, withDefaultNamespace } from "../testing/test-server.ts";

const mergePatch = { "content-type": "application/merge-patch+json" };

let test: TestServer;
beforeAll(async () => {
  test = await withDefaultNamespace(await openTestServer());
});
afterAll(() => test.close());

/** A pod that runs on a node, which alone may take it away. */
async function running(name: string): Promise<string> {
  const at = `${podsPath}/${name}`;
  await test.call("POST", podsPath, podObject(name, { nodeName: "n", terminationGracePeriodSeconds: 7 }));
  const ready = { type: "Ready", status: "True" };
  await test.call("PATCH", `${at}/status`, { status: { phase: "Running", conditions: [ready] } }, mergePatch);
  return at;
}

const eviction = (name: string, more: object = {}): object => ({
  apiVersion: "policy/v1",
  kind: "Eviction",
  metadata: { name, namespace: "default" },
  ...more,
});

describe("an eviction by the API", () => {
  it("marks the pod as disrupted, and deletes it with its own grace", async () => {
    const at = await running("a");
    expect(await test.call("POST", `${at}/eviction`, eviction("a"))).toEqual({
      code: 201,
      body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 },
    });
    const { metadata, status } = (await test.call("GET", at)).body;
    expect(metadata).toMatchObject({ deletionGracePeriodSeconds: 7, deletionTimestamp: expect.any(String) });
    expect(status.conditions).toMatchObject([
      { type: "Ready", status: "True" },
      { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "Eviction API: evicting" },
    ]);
    expect((await test.call("POST", `${at}/eviction`, eviction("a"))).code).toBe(201); // On its way already.
  });

  it("takes the grace and the preconditions of its options", async () => {
    const at = await running("b");
    const other = { deleteOptions: { preconditions: { uid: "another" } } };
    expect((await test.call("POST", `${at}/eviction`, eviction("b", other))).code).toBe(409);
    expect((await test.call("GET", at)).body.status.conditions).toHaveLength(1); // Refused as a whole.
    await test.call("POST", `${at}/eviction`, eviction("b", { deleteOptions: { gracePeriodSeconds: 0 } }));
    expect((await test.call("GET", at)).code).toBe(404);
  });

  it("is refused for another name, another verb, and a pod that is not there; a dry run does nothing", async () => {
    const at = await running("c");
    expect(await test.call("POST", `${at}/eviction`, eviction("d"))).toMatchObject({
      code: 400,
      body: { message: "name in URL does not match name in Eviction object" },
    });
    expect((await test.call("GET", `${at}/eviction`)).code).toBe(405);
    expect((await test.call("POST", `${podsPath}/none/eviction`, eviction("none"))).code).toBe(404);
    expect((await test.call("POST", `${at}/eviction?dryRun=All`, eviction("c"))).code).toBe(201);
    expect((await test.call("GET", at)).body.metadata.deletionTimestamp).toBeUndefined();
  });

  it("is refused where it or its options cannot be read: a dry run is not taken for none", async () => {
    const at = await running("e");
    const unread = [
      eviction("e", { deleteOptions: [{ dryRun: ["All"] }] }),
      eviction("e", { deleteOptions: "dryRun" }),
      { apiVersion: "v1", kind: "Pod", metadata: { name: "e" } },
      eviction("e", { apiVersion: "apps/v1" }),
    ];
    for (const body of unread) expect((await test.call("POST", `${at}/eviction`, body)).code).toBe(400);
    const { metadata, status } = (await test.call("GET", at)).body;
    expect([metadata.deletionTimestamp, status.conditions.length]).toEqual([undefined, 1]);
    expect((await test.call("POST", `${at}/eviction`, eviction("e", { deleteOptions: null }))).code).toBe(201);
  });
});
