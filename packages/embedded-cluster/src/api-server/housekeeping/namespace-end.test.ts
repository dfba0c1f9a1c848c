import { expect, it, onTestFinished } from "vitest";
import { openTestServer, podObject, type TestServer } from "../testing/test-server.ts";

const at = "/api/v1/namespaces/n";
const mergePatch = { "content-type": "application/merge-patch+json" };

async function openWith(metadata: object = {}): Promise<TestServer> {
  const test = await openTestServer();
  onTestFinished(() => test.close());
  await test.call("POST", "/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "n", ...metadata },
  });
  return test;
}

const patched = (test: TestServer, metadata: object) => test.call("PATCH", at, { metadata }, mergePatch);
const codeOf = async (test: TestServer, path: string): Promise<number> => (await test.call("GET", path)).code;

it("a namespace that is being emptied stays while something is in it, whatever is written on it", async () => {
  const test = await openWith();
  await test.call("POST", `${at}/pods`, podObject("p", { nodeName: "node" })); // Its node alone may take it away.
  expect((await test.call("DELETE", at)).code).toBe(200);
  expect((await patched(test, { labels: { a: "b" } })).body.metadata).toMatchObject({ labels: { a: "b" } });
  expect([await codeOf(test, at), await codeOf(test, `${at}/pods/p`)]).toEqual([200, 200]);
  await test.call("DELETE", `${at}/pods/p?gracePeriodSeconds=0`);
  await expect.poll(() => codeOf(test, at)).toBe(404);
});

it("a namespace with a finalizer stays until that is taken off, and goes once it is empty", async () => {
  const test = await openWith({ finalizers: ["holdfast.dev/mine"] });
  await test.call("POST", `${at}/pods`, podObject("p", { nodeName: "node" }));
  await test.call("DELETE", at);
  await test.call("DELETE", `${at}/pods/p?gracePeriodSeconds=0`);
  // What is begun later is over: so is what that came to.
  await test.call("POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "later" } });
  await test.call("DELETE", "/api/v1/namespaces/later");
  await expect.poll(() => codeOf(test, "/api/v1/namespaces/later")).toBe(404);
  expect(await codeOf(test, at)).toBe(200);
  expect((await patched(test, { finalizers: [] })).code).toBe(200);
  await expect.poll(() => codeOf(test, at)).toBe(404);
});
