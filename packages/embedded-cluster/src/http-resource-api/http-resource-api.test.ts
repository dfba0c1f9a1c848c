import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTestServer, podObject, type TestServer, withDefaultNamespace } from "../api-server/testing/test-server.ts";
import { ApiStatusError } from "../api-status-error.ts";
import type { KubeObject, ObjectRef, ResourceRef } from "../resource-api.ts";
import { HttpResourceApi } from "./http-resource-api.ts";
import { readKubeconfig } from "./server-access.ts";

const pods: ResourceRef = { group: "", version: "v1", plural: "pods" };
const sandboxes: ResourceRef = { group: "agents.x-k8s.io", version: "v1beta1", plural: "sandboxes" };
const namespaces: ResourceRef = { group: "", version: "v1", plural: "namespaces" };
const mergePatch = "application/merge-patch+json";

let test: TestServer;
let api: HttpResourceApi;
beforeEach(async () => {
  test = await withDefaultNamespace(await openTestServer());
  api = new HttpResourceApi(readKubeconfig(test.server.kubeconfigPath));
});
afterEach(async () => {
  api.close();
  await test.close();
});

const pod = (name: string): KubeObject => ({ apiVersion: "v1", kind: "Pod", metadata: { name }, ...podObject(name) });
const podRef = (name: string): ObjectRef => ({ resource: pods, namespace: "default", name });

/** What a refused call throws. */
const refusalOf = (call: Promise<unknown>): Promise<ApiStatusError> =>
  call.then(
    () => Promise.reject(new Error("the call succeeded")),
    (error: unknown) => (error instanceof ApiStatusError ? error : Promise.reject(error)),
  );

describe("ResourceApi over HTTP", () => {
  it("creates, reads, lists, patches and deletes as in-process callers do", async () => {
    const made = await api.create(pods, "default", pod("a"));
    expect(await api.get(podRef("a"))).toEqual(made);
    expect(await test.server.api.get(podRef("a"))).toEqual(made);
    await api.patch(podRef("a"), mergePatch, { metadata: { labels: { of: "a" } } });
    await api.patch(podRef("a"), mergePatch, { status: { phase: "Running" } }, "status");
    const patched = await api.get(podRef("a"));
    expect(patched).toMatchObject({ metadata: { labels: { of: "a" } }, status: { phase: "Running" } });
    expect(await api.list(pods)).toEqual({ items: [patched], resourceVersion: patched.metadata.resourceVersion });
    expect((await api.list(pods, "elsewhere")).items).toEqual([]);
    await api.delete(podRef("a"), { gracePeriodSeconds: 0, preconditions: { uid: made.metadata.uid ?? "" } });
    expect((await refusalOf(api.get(podRef("a")))).code).toBe(404);
  });

  it("reaches what has no namespace", async () => {
    const ref = { resource: namespaces, namespace: "", name: "default" };
    expect(await api.get(ref)).toMatchObject({ kind: "Namespace", metadata: { name: "default" } });
    expect((await api.list(namespaces)).items.map((item) => item.metadata.name)).toContain("default");
  });

  it("gives items of a list the kind that the list names once for all", async () => {
    await api.create(pods, "default", pod("a"));
    const { body } = await test.call("GET", "/api/v1/namespaces/default/pods");
    expect(body.items[0]).not.toHaveProperty("kind"); // as the real server sends it
    expect((await api.list(pods, "default")).items[0]).toMatchObject({ apiVersion: "v1", kind: "Pod" });
  });

  it("throws every refusal with the Status that the server sent", async () => {
    await api.create(pods, "default", pod("a"));
    expect((await refusalOf(api.create(pods, "default", pod("a")))).status).toMatchObject({
      code: 409,
      reason: "AlreadyExists",
      details: { name: "a", kind: "pods" },
    });
    const wish = { preconditions: { uid: "another" } };
    expect((await refusalOf(api.delete(podRef("a"), wish))).reason).toBe("Conflict");
    const test422 = [{ op: "test", path: "/metadata/uid", value: "another" }];
    expect((await refusalOf(api.patch(podRef("a"), "application/json-patch+json", test422))).code).toBe(422);
    const uid = await refusalOf(api.patch(podRef("a"), mergePatch, { metadata: { uid: "another" } }));
    expect(uid.message).toBe('Pod "a" is invalid: metadata.uid: Invalid value: "another": field is immutable');
    const noSpec = { apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", metadata: { name: "s" } };
    expect((await refusalOf(api.create(sandboxes, "default", noSpec))).status.details?.causes).not.toEqual([]);
  });
});

describe("binding", () => {
  it("gives a pod to a node once, marks it scheduled, and answers as the real server does", async () => {
    const { metadata } = await api.create(pods, "default", pod("a"));
    const uid = metadata.uid ?? "";
    await api.bind(podRef("a"), { uid, nodeName: "n1" });
    expect(await api.get(podRef("a"))).toMatchObject({
      spec: { nodeName: "n1" },
      status: { conditions: [expect.objectContaining({ type: "PodScheduled", status: "True" })] },
    });
    expect((await refusalOf(api.bind(podRef("a"), { uid, nodeName: "n2" }))).status).toMatchObject({
      code: 409,
      reason: "Conflict",
      message: 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"',
      details: { name: "a", kind: "pods/binding" },
    });
    const target = { kind: "Node", name: "n1" };
    await api.create(pods, "default", pod("b"));
    const path = "/api/v1/namespaces/default/pods/b/binding";
    expect(await test.call("POST", path, { metadata: { name: "b", labels: { laid: "over" } }, target })).toEqual({
      code: 201,
      body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 },
    });
    expect((await api.get(podRef("b"))).metadata.labels).toEqual({ laid: "over" });
    await api.create(pods, "default", pod("c"));
    expect((await refusalOf(api.patch(podRef("c"), mergePatch, { spec: { nodeName: "n" } }))).code).toBe(422);
  });

  it("is refused for another pod of the name, for a gated one, for one that is being deleted, and for none", async () => {
    await api.create(pods, "default", {
      ...pod("g"),
      spec: { ...(pod("g").spec as object), schedulingGates: [{ name: "a.b/c" }] },
    });
    expect((await refusalOf(api.bind(podRef("g"), { uid: "", nodeName: "n" }))).code).toBe(409);
    const finalizers = ["holdfast.test/kept"];
    await api.create(pods, "default", { ...pod("a"), metadata: { name: "a", finalizers } });
    expect((await refusalOf(api.bind(podRef("a"), { uid: "another", nodeName: "n" }))).code).toBe(409);
    await api.delete(podRef("a"));
    const { metadata } = await api.get(podRef("a"));
    const refused = await refusalOf(api.bind(podRef("a"), { uid: metadata.uid ?? "", nodeName: "n" }));
    expect(refused.message).toMatch(/pod a is being deleted, cannot be assigned to a host/);
    expect((await refusalOf(api.bind(podRef("nobody"), { uid: "", nodeName: "n" }))).code).toBe(404);
  });
});
