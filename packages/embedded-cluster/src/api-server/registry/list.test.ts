import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
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

let test: TestServer;
beforeEach(async () => {
  test = await withDefaultNamespace(await openTestServer());
});
afterEach(() => test.close());

const create = (name: string, metadata: object = {}) => test.call("POST", secretsPath, secretObject(name, metadata));
const remove = (name: string) => test.call("DELETE", `${secretsPath}/${name}`);
const names = async (query: string) =>
  (await test.call("GET", `${secretsPath}?${query}`)).body.items.map(
    (item: { metadata: { name: string } }) => item.metadata.name,
  );
const select = (labelSelector: string) => names(`labelSelector=${encodeURIComponent(labelSelector)}`);

describe("a list", () => {
  it("carries kinds on custom items and none on built-in ones, as the real server does", async () => {
    await create("a");
    await test.call("POST", sandboxesPath, sandboxObject("a"));
    const { body: secrets } = await test.call("GET", secretsPath);
    expect(secrets).toMatchObject({
      kind: "SecretList",
      apiVersion: "v1",
      metadata: { resourceVersion: expect.any(String) },
    });
    expect(secrets.items[0].kind).toBeUndefined();
    const { body: sandboxes } = await test.call("GET", sandboxesPath);
    expect(sandboxes.items[0]).toMatchObject({ kind: "Sandbox", apiVersion: "agents.x-k8s.io/v1beta1" });
  });

  it("of nothing is empty and has a version to watch from", async () => {
    const { body } = await test.call("GET", "/api/v1/events");
    expect(body.items).toEqual([]);
    expect(Number(body.metadata.resourceVersion)).toBeGreaterThan(0);
  });

  it("by pages gives each object once, and says what remains", async () => {
    for (let i = 0; i < 7; i++) await create(`s${i}`);
    const seen: string[] = [];
    const remaining: unknown[] = [];
    let token = "";
    do {
      const { body } = await test.call("GET", `${secretsPath}?limit=3&continue=${token}`);
      seen.push(...body.items.map((item: { metadata: { name: string } }) => item.metadata.name));
      remaining.push(body.metadata.remainingItemCount);
      token = body.metadata.continue ?? "";
    } while (token !== "");
    expect(seen).toEqual(["s0", "s1", "s2", "s3", "s4", "s5", "s6"]);
    expect(remaining).toEqual([4, 1, undefined]);
  });

  it("by pages reads the cluster as it stood at the first page", async () => {
    for (const name of ["a", "b", "c", "d", "e"]) await create(name, { labels: { was: name } });
    const { body: first } = await test.call("GET", `${secretsPath}?limit=2`);
    await remove("a");
    await remove("d");
    await create("bb");
    await test.call(
      "PATCH",
      `${secretsPath}/e`,
      { metadata: { labels: { was: "changed" } } },
      { "content-type": "application/merge-patch+json" },
    );
    await remove("c");
    await create("c", { labels: { was: "another" } });
    const { body: rest } = await test.call("GET", `${secretsPath}?limit=9&continue=${first.metadata.continue}`);
    expect(rest.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    expect(rest.items.map((item: { metadata: object }) => item.metadata)).toMatchObject([
      { name: "c", labels: { was: "c" } },
      { name: "d", labels: { was: "d" } },
      { name: "e", labels: { was: "e" } },
    ]);
    expect(await names("")).toEqual(["b", "bb", "c", "e"]);
  });

  it("reads at an exact version, and not from before a wished one", async () => {
    const { body } = await create("a");
    await remove("a");
    const at = `resourceVersion=${body.metadata.resourceVersion}`;
    expect(await names(`${at}&resourceVersionMatch=Exact`)).toEqual(["a"]);
    expect(await names(at)).toEqual([]);
    expect(await test.call("GET", `${secretsPath}?resourceVersion=99999`)).toMatchObject({ code: 504 });
  });

  it("refuses a continue token that it did not make", async () => {
    expect(await test.call("GET", `${secretsPath}?limit=1&continue=abc`)).toMatchObject({ code: 400 });
    expect(await test.call("GET", `${secretsPath}?limit=many`)).toMatchObject({ code: 400 });
  });
});

describe("a label selector", () => {
  beforeEach(async () => {
    await create("both", { labels: { app: "web", "a.b/tier": "1" } });
    await create("one", { labels: { app: "db" } });
    await create("none");
  });

  it.each([
    ["app=web", ["both"]],
    ["app==db", ["one"]],
    ["app!=web", ["none", "one"]],
    ["app in (web, db)", ["both", "one"]],
    ["app notin (web),app", ["one"]],
    ["a.b/tier", ["both"]],
    ["!app", ["none"]],
    ["app in (web,db),a.b/tier=1", ["both"]],
    ["", ["both", "none", "one"]],
  ])("%j selects %j", async (selector, expected) => {
    expect(await select(selector)).toEqual(expected);
  });

  it.each(["app in web", "app in (", "=x", "app=a=b", "a b"])("%j is refused", async (selector) => {
    expect(await test.call("GET", `${secretsPath}?labelSelector=${encodeURIComponent(selector)}`)).toMatchObject({
      code: 400,
    });
  });
});

describe("a field selector", () => {
  it("knows names, namespaces, nodes and phases, and refuses the rest by name", async () => {
    await test.call("POST", podsPath, podObject("bound", { nodeName: "n" }));
    await test.call("POST", podsPath, podObject("unbound"));
    const pods = async (selector: string) =>
      (await test.call("GET", `/api/v1/pods?fieldSelector=${encodeURIComponent(selector)}`)).body;
    const selected = async (selector: string) =>
      (await pods(selector)).items.map((item: { metadata: { name: string } }) => item.metadata.name);
    expect(await selected("metadata.name=bound")).toEqual(["bound"]);
    expect(await selected("metadata.namespace!=default")).toEqual([]);
    expect(await selected("spec.nodeName=")).toEqual(["unbound"]);
    expect(await selected("spec.nodeName=n,status.phase=Pending")).toEqual(["bound"]);
    expect(await pods("spec.hostname=x")).toMatchObject({
      code: 400,
      message: expect.stringContaining("field label not supported: spec.hostname"),
    });
  });
});

describe("deletecollection", () => {
  it("deletes what is selected and answers with it", async () => {
    await create("a", { labels: { app: "web" } });
    await create("b");
    const { body } = await test.call("DELETE", `${secretsPath}?labelSelector=app%3Dweb`);
    expect(body).toMatchObject({ kind: "SecretList", items: [{ metadata: { name: "a" } }] });
    expect(await names("")).toEqual(["b"]);
  });
});
