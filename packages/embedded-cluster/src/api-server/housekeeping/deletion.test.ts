import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Answered,
  claimsPath,
  openTestServer,
  podObject,
  podsPath,
  sandboxesPath,
  sandboxObject,
  secretObject,
  secretsPath,
  type TestServer,
  withDefaultNamespace,
} from "../testing/test-server.ts";

const mergePatch = { "content-type": "application/merge-patch+json" };

let test: TestServer;
let now: Date;
beforeEach(async () => {
  now = new Date("2030-01-01T00:00:00Z");
  test = await withDefaultNamespace(await openTestServer({ now: () => now }));
});
afterEach(() => test.close());

const get = (path: string) => test.call("GET", path);
const post = async (path: string, object: object): Promise<Answered> => {
  const { code, body } = await test.call("POST", path, object);
  expect(code, JSON.stringify(body)).toBe(201);
  return body;
};
const patch = (path: string, body: object) => test.call("PATCH", path, body, mergePatch);
const remove = (path: string, options?: object) => test.call("DELETE", path, options);

/** Waits until an object is gone, by its watch. */
async function gone(path: string): Promise<void> {
  const [collection, name] = [path.slice(0, path.lastIndexOf("/")), path.slice(path.lastIndexOf("/") + 1)];
  const watch = await test.watch(`${collection}?watch=true&fieldSelector=metadata.name%3D${name}&timeoutSeconds=10`);
  try {
    if ((await get(path)).code === 404) return;
    for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
      if (event.type === "DELETED") return;
    }
    throw new Error(`${path} did not go`);
  } finally {
    watch.close();
  }
}

/** Lets all housekeeping that was caused so far run: it does so between requests. */
async function settled(): Promise<void> {
  const marker = await post(secretsPath, {
    ...secretObject("", {
      generateName: "marker-",
      ownerReferences: [ownedBy({ metadata: { uid: "nobody", name: "x" } })],
    }),
  });
  await gone(`${secretsPath}/${marker.metadata.name}`);
}

const ownedBy = (owner: Answered, block = false) => ({
  apiVersion: "agents.x-k8s.io/v1beta1",
  kind: "Sandbox",
  name: owner.metadata.name,
  uid: owner.metadata.uid,
  controller: true,
  ...(block ? { blockOwnerDeletion: true } : {}),
});

describe("delete", () => {
  it("of a custom resource answers a Status, of a pod the pod", async () => {
    const sandbox = await post(sandboxesPath, sandboxObject("a"));
    expect(await remove(`${sandboxesPath}/a`)).toEqual({
      code: 200,
      body: {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Success",
        details: { name: "a", group: "agents.x-k8s.io", kind: "sandboxes", uid: sandbox.metadata.uid },
      },
    });
    await post(podsPath, podObject("a"));
    expect((await remove(`${podsPath}/a`)).body).toMatchObject({ kind: "Pod" });
    expect(await remove(`${podsPath}/a`)).toMatchObject({ code: 404, body: { message: 'pods "a" not found' } });
  });

  it("with a precondition that does not hold is 409 and deletes nothing", async () => {
    const { metadata } = await post(sandboxesPath, sandboxObject("a"));
    expect(await remove(`${sandboxesPath}/a`, { preconditions: { uid: "other" } })).toMatchObject({
      code: 409,
      body: {
        reason: "Conflict",
        message: `Operation cannot be fulfilled on Sandbox.agents.x-k8s.io "a": the UID in the precondition (other) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
      },
    });
    expect(await remove(`${sandboxesPath}/a`, { preconditions: { resourceVersion: "1" } })).toMatchObject({
      code: 409,
    });
    expect((await get(`${sandboxesPath}/a`)).code).toBe(200);
    const { uid, resourceVersion } = metadata;
    expect(await remove(`${sandboxesPath}/a`, { preconditions: { uid, resourceVersion } })).toMatchObject({
      code: 200,
    });
  });

  it("refuses options that it cannot read, and deletes nothing", async () => {
    await post(secretsPath, secretObject("a"));
    expect(await remove(`${secretsPath}/a`, { propagationPolicy: "Sideways" })).toMatchObject({ code: 422 });
    expect(await remove(`${secretsPath}/a`, { gracePeriodSeconds: "soon" })).toMatchObject({ code: 400 });
    expect((await get(`${secretsPath}/a`)).code).toBe(200);
  });

  it("waits for finalizers, and refuses new ones meanwhile", async () => {
    await post(sandboxesPath, sandboxObject("a", {}, { finalizers: ["x/y"] }));
    const { body } = await remove(`${sandboxesPath}/a`);
    expect(body.metadata).toMatchObject({
      deletionTimestamp: "2030-01-01T00:00:00Z",
      generation: 2,
      finalizers: ["x/y"],
    });
    expect(await patch(`${sandboxesPath}/a`, { metadata: { finalizers: ["x/y", "x/z"] } })).toMatchObject({
      code: 422,
    });
    expect((await patch(`${sandboxesPath}/a`, { metadata: { finalizers: null } })).code).toBe(200);
    expect((await get(`${sandboxesPath}/a`)).code).toBe(404);
  });
});

describe("a pod's deletion", () => {
  it("is at once when no node runs it or it has ended", async () => {
    await post(podsPath, podObject("unbound"));
    await remove(`${podsPath}/unbound`);
    expect((await get(`${podsPath}/unbound`)).code).toBe(404);
    await post(podsPath, podObject("ended", { nodeName: "n" }));
    await patch(`${podsPath}/ended/status`, { status: { phase: "Failed" } });
    await remove(`${podsPath}/ended`);
    expect((await get(`${podsPath}/ended`)).code).toBe(404);
  });

  it("leaves a bound pod, with its own grace, until the node deletes it with none", async () => {
    await post(podsPath, podObject("a", { nodeName: "n", terminationGracePeriodSeconds: 25 }));
    const { body } = await remove(`${podsPath}/a`);
    expect(body.metadata).toMatchObject({ deletionTimestamp: "2030-01-01T00:00:25Z", deletionGracePeriodSeconds: 25 });
    await patch(`${podsPath}/a/status`, { status: { phase: "Running" } });
    expect((await get(`${podsPath}/a`)).code).toBe(200);
    await remove(`${podsPath}/a`, { gracePeriodSeconds: 0, preconditions: { uid: body.metadata.uid } });
    expect((await get(`${podsPath}/a`)).code).toBe(404);
  });

  it("may be hastened by a second delete, never put off", async () => {
    await post(podsPath, podObject("a", { nodeName: "n" }));
    const stampAfter = async (gracePeriodSeconds: number) =>
      (await remove(`${podsPath}/a`, { gracePeriodSeconds })).body.metadata.deletionTimestamp;
    expect(await stampAfter(20)).toBe("2030-01-01T00:00:20Z");
    now = new Date("2030-01-01T00:00:02Z");
    expect(await stampAfter(60)).toBe("2030-01-01T00:00:20Z");
    expect(await stampAfter(5)).toBe("2030-01-01T00:00:05Z");
  });

  it("does not touch a new pod of the same name", async () => {
    const first = await post(podsPath, podObject("a"));
    await remove(`${podsPath}/a`);
    await post(podsPath, podObject("a"));
    const late = await remove(`${podsPath}/a`, { gracePeriodSeconds: 0, preconditions: { uid: first.metadata.uid } });
    expect(late.code).toBe(409);
    expect((await get(`${podsPath}/a`)).code).toBe(200);
  });
});

describe("garbage collection", () => {
  it("in the background deletes the owner at once and its dependents after it, by uid", async () => {
    const owner = await post(sandboxesPath, sandboxObject("a"));
    await post(secretsPath, secretObject("child", { ownerReferences: [ownedBy(owner)] }));
    await post(secretsPath, secretObject("other"));
    await remove(`${sandboxesPath}/a`, { propagationPolicy: "Background" });
    expect((await get(`${sandboxesPath}/a`)).code).toBe(404);
    await gone(`${secretsPath}/child`);
    expect((await get(`${secretsPath}/other`)).code).toBe(200);
  });

  it("in the foreground keeps the owner until its blocking dependents are gone", async () => {
    const owner = await post(sandboxesPath, sandboxObject("a"));
    await post(podsPath, podObject("child", { nodeName: "n" }, { ownerReferences: [ownedBy(owner, true)] }));
    const { body } = await remove(`${sandboxesPath}/a`, { propagationPolicy: "Foreground" });
    expect(body.metadata).toMatchObject({ finalizers: ["foregroundDeletion"], deletionTimestamp: expect.any(String) });
    await settled();
    const child = await get(`${podsPath}/child`);
    expect(child.body.metadata.deletionTimestamp).toEqual(expect.any(String));
    expect((await get(`${sandboxesPath}/a`)).code).toBe(200);
    await remove(`${podsPath}/child`, { gracePeriodSeconds: 0 });
    await gone(`${sandboxesPath}/a`);
  });

  it("by orphaning deletes the owner and leaves its dependents without it", async () => {
    const owner = await post(sandboxesPath, sandboxObject("a"));
    await post(secretsPath, secretObject("child", { ownerReferences: [ownedBy(owner)] }));
    await remove(`${sandboxesPath}/a`, { propagationPolicy: "Orphan" });
    await gone(`${sandboxesPath}/a`);
    await settled();
    const { code, body } = await get(`${secretsPath}/child`);
    expect(code).toBe(200);
    expect(body.metadata.ownerReferences).toBeUndefined();
  });

  it("is not fooled by a new owner of the same name", async () => {
    const owner = await post(sandboxesPath, sandboxObject("a"));
    await remove(`${sandboxesPath}/a`);
    await post(sandboxesPath, sandboxObject("a"));
    await post(secretsPath, secretObject("late", { ownerReferences: [ownedBy(owner)] }));
    await gone(`${secretsPath}/late`);
    expect((await get(`${sandboxesPath}/a`)).code).toBe(200);
  });

  it("keeps what has another owner that lives, and drops the lost reference", async () => {
    const lost = await post(sandboxesPath, sandboxObject("lost"));
    const living = await post(sandboxesPath, sandboxObject("living"));
    const second = { ...ownedBy(living), controller: false };
    await post(secretsPath, secretObject("child", { ownerReferences: [ownedBy(lost), second] }));
    await remove(`${sandboxesPath}/lost`);
    await settled();
    const { body } = await get(`${secretsPath}/child`);
    expect(body.metadata.ownerReferences).toMatchObject([{ name: "living" }]);
  });

  it("deletes nothing for an owner of a kind that it does not know", async () => {
    const unknown = { apiVersion: "apps/v1", kind: "Deployment", name: "d", uid: "d-uid" };
    await post(secretsPath, secretObject("child", { ownerReferences: [unknown] }));
    await settled();
    expect((await get(`${secretsPath}/child`)).code).toBe(200);
  });

  it("takes up, at the next start, what a stop left half done", async () => {
    const owner = await post(sandboxesPath, sandboxObject("a"));
    await post(podsPath, podObject("child", { nodeName: "n" }, { ownerReferences: [ownedBy(owner, true)] }));
    await remove(`${sandboxesPath}/a`, { propagationPolicy: "Foreground" });
    await test.server.stop();
    test = await openTestServer({ dataDir: test.dataDir });
    await settled();
    expect((await get(`${podsPath}/child`)).body.metadata.deletionTimestamp).toEqual(expect.any(String));
    await remove(`${podsPath}/child`, { gracePeriodSeconds: 0 });
    await gone(`${sandboxesPath}/a`);
  });
});

describe("a claim", () => {
  const claim = (name: string) => ({
    metadata: { name },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  });
  const podWith = (name: string, claimName: string) =>
    podObject(name, { nodeName: "n", volumes: [{ name: "v", persistentVolumeClaim: { claimName } }] });

  it("that a pod uses goes only after the pod", async () => {
    await post(claimsPath, claim("used"));
    await post(podsPath, podWith("user", "used"));
    await remove(`${claimsPath}/used`);
    await settled();
    expect((await get(`${claimsPath}/used`)).body.metadata.finalizers).toEqual(["kubernetes.io/pvc-protection"]);
    await remove(`${podsPath}/user`, { gracePeriodSeconds: 0 });
    await gone(`${claimsPath}/used`);
  });

  it("that no pod uses goes at once", async () => {
    await post(claimsPath, claim("unused"));
    await post(podsPath, podWith("user", "other"));
    await remove(`${claimsPath}/unused`);
    await gone(`${claimsPath}/unused`);
  });
});

describe("a namespace", () => {
  it("is emptied when deleted, takes nothing new meanwhile, and then goes", async () => {
    await post("/api/v1/namespaces", { metadata: { name: "work" } });
    const pods = "/api/v1/namespaces/work/pods";
    await post(pods, podObject("a", { nodeName: "n" }));
    await remove("/api/v1/namespaces/work");
    expect(await test.call("POST", "/api/v1/namespaces/work/secrets", secretObject("late"))).toMatchObject({
      code: 403,
    });
    await settled();
    expect((await get(`${pods}/a`)).body.metadata.deletionTimestamp).toEqual(expect.any(String));
    await remove(`${pods}/a`, { gracePeriodSeconds: 0 });
    await gone("/api/v1/namespaces/work");
  });

  it("named default cannot be deleted", async () => {
    expect(await remove("/api/v1/namespaces/default")).toMatchObject({ code: 403, body: { reason: "Forbidden" } });
  });
});
