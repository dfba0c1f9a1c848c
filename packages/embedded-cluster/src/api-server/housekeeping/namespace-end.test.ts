import { expect, it, onTestFinished } from "vitest";
import { openTestServer, podObject, secretObject, type TestServer } from "../testing/test-server.ts";

const ns = "/api/v1/namespaces/n";
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

const patched = (test: TestServer, metadata: object) => test.call("PATCH", ns, { metadata }, mergePatch);
const codeOf = async (test: TestServer, path: string): Promise<number> => (await test.call("GET", path)).code;

it("a namespace that is being emptied stays while something is in it, whatever is written on it", async () => {
  const test = await openWith();
  await test.call("POST", `${ns}/pods`, podObject("p", { nodeName: "node" })); // Its node alone may take it away.
  expect((await test.call("DELETE", ns)).code).toBe(200);
  expect((await patched(test, { labels: { a: "b" } })).body.metadata).toMatchObject({ labels: { a: "b" } });
  expect([await codeOf(test, ns), await codeOf(test, `${ns}/pods/p`)]).toEqual([200, 200]);
  await test.call("DELETE", `${ns}/pods/p?gracePeriodSeconds=0`);
  await expect.poll(() => codeOf(test, ns)).toBe(404);
});

it("a namespace with a finalizer stays until that is taken off, and goes once it is empty", async () => {
  const test = await openWith({ finalizers: ["holdfast.dev/mine"] });
  await test.call("POST", `${ns}/pods`, podObject("p", { nodeName: "node" }));
  await test.call("DELETE", ns);
  await test.call("DELETE", `${ns}/pods/p?gracePeriodSeconds=0`);
  // What is begun later is over: so is what that came to.
  await test.call("POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "later" } });
  await test.call("DELETE", "/api/v1/namespaces/later");
  await expect.poll(() => codeOf(test, "/api/v1/namespaces/later")).toBe(404);
  expect(await codeOf(test, ns)).toBe(200);
  expect((await patched(test, { finalizers: [] })).code).toBe(200);
  await expect.poll(() => codeOf(test, ns)).toBe(404);
});

it("a namespace is emptied a few objects at a time, with requests in between", async () => {
  const test = await openWith();
  for (let at = 0; at < 40; at += 1) await test.call("POST", `${ns}/secrets`, secretObject(`s${at}`));
  let inTurn = 0;
  let most = 0;
  const unsubscribe = test.server.registry.onChange(({ type }) => {
    if (type === "DELETED") most = Math.max(most, ++inTurn);
  });
  onTestFinished(() => void unsubscribe());
  let turning = true;
  const turn = (): void => {
    inTurn = 0;
    if (turning) setImmediate(turn);
  };
  turn();
  await test.call("DELETE", ns);
  await expect.poll(() => codeOf(test, ns)).toBe(404);
  turning = false;
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(8);
});
