import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, textAt } from "../suite/json.ts";
import { claimObject, podObject, sandboxObject, secretObject } from "../suite/objects.ts";
import { mergePatch, type Stage } from "../suite/stage.ts";

const source = fromKubernetes;

/** A Secret that was changed once, with its first version, which is stale. */
async function changedSecret(stage: Stage): Promise<{ name: string; stale: string; current: string; uid: string }> {
  const name = stage.name("secret");
  const made = await stage.create("secrets", secretObject(name));
  const changed = await stage.merge("secrets", name, { metadata: { labels: { a: "1" } } });
  return {
    name,
    stale: textAt(made, "metadata", "resourceVersion"),
    current: textAt(changed, "metadata", "resourceVersion"),
    uid: textAt(made, "metadata", "uid"),
  };
}

async function changedSandbox(stage: Stage): Promise<{ name: string; stale: string; uid: string }> {
  const name = stage.name("sandbox");
  const made = await stage.create("sandboxes", sandboxObject(name));
  await stage.merge("sandboxes", name, { metadata: { labels: { a: "1" } } });
  return { name, stale: textAt(made, "metadata", "resourceVersion"), uid: textAt(made, "metadata", "uid") };
}

const otherUid = "11111111-1111-4111-8111-111111111111";

/** Optimistic concurrency: who writes over what they did not see is refused. */
export const concurrency: readonly ConformanceCase[] = [
  {
    id: "concurrency/put-stale",
    title: "a PUT with a stale resourceVersion is 409 Conflict and changes nothing",
    source,
    run: async (stage) => {
      const { name, stale } = await changedSecret(stage);
      const body = secretObject(name, { resourceVersion: stale });
      const { code } = await stage.call("put", "PUT", stage.path("secrets", name), { body });
      assert.equal(code, 409);
      assert.equal(at(await stage.get("secrets", name), "metadata", "labels", "a"), "1");
    },
  },
  {
    id: "concurrency/put-stale-sandbox",
    title: "a PUT of a Sandbox with a stale resourceVersion is 409 Conflict",
    source,
    run: async (stage) => {
      const { name, stale } = await changedSandbox(stage);
      const body = sandboxObject(name, {}, { resourceVersion: stale });
      const { code } = await stage.call("put", "PUT", stage.path("sandboxes", name), { body });
      assert.equal(code, 409);
    },
  },
  {
    id: "concurrency/put-current",
    title: "a PUT with the current resourceVersion replaces the object and moves its version",
    source,
    run: async (stage) => {
      const { name, current } = await changedSecret(stage);
      const body = secretObject(name, { resourceVersion: current, annotations: { b: "2" } });
      const { body: answer } = await stage.call("put", "PUT", stage.path("secrets", name), { body });
      assert.equal(at(answer, "metadata", "labels"), undefined);
      assert.notEqual(textAt(answer, "metadata", "resourceVersion"), current);
    },
  },
  {
    id: "concurrency/put-without-version",
    title: "a PUT without resourceVersion overwrites a built-in and is 422 for a custom resource",
    source,
    run: async (stage) => {
      const { name } = await changedSecret(stage);
      const answer = await stage.call("built-in", "PUT", stage.path("secrets", name), { body: secretObject(name) });
      assert.equal(answer.code, 200);
      const { name: sandbox } = await changedSandbox(stage);
      const refused = await stage.call("custom", "PUT", stage.path("sandboxes", sandbox), {
        body: sandboxObject(sandbox),
      });
      assert.equal(refused.code, 422);
    },
  },
  {
    id: "concurrency/put-other-uid",
    title: "a PUT that names another uid is 409 Conflict",
    source,
    run: async (stage) => {
      const { name, current } = await changedSecret(stage);
      const body = secretObject(name, { resourceVersion: current, uid: otherUid });
      const { code } = await stage.call("put", "PUT", stage.path("secrets", name), { body });
      assert.equal(code, 409);
      const { name: sandbox } = await changedSandbox(stage);
      const { metadata } = (await stage.get("sandboxes", sandbox)) as { metadata: { resourceVersion: string } };
      const { resourceVersion } = metadata;
      const custom = await stage.call("put custom", "PUT", stage.path("sandboxes", sandbox), {
        body: sandboxObject(sandbox, {}, { resourceVersion, uid: otherUid }),
      });
      assert.equal(custom.code, 409);
    },
  },
  {
    id: "concurrency/put-other-name",
    title: "a PUT whose body names another object is 400",
    source,
    run: async (stage) => {
      const { name, current } = await changedSecret(stage);
      const body = secretObject(stage.name("other"), { resourceVersion: current });
      const { code } = await stage.call("put", "PUT", stage.path("secrets", name), { body });
      assert.equal(code, 400);
    },
  },
  {
    id: "concurrency/put-absent",
    title: "a PUT of an object that is not there is 404",
    source,
    run: async (stage) => {
      const name = stage.name("absent");
      const secret = await stage.call("built-in", "PUT", stage.path("secrets", name), { body: secretObject(name) });
      assert.equal(secret.code, 404);
      const body = sandboxObject(name, {}, { resourceVersion: "1" });
      const sandbox = await stage.call("custom", "PUT", stage.path("sandboxes", name), { body });
      assert.equal(sandbox.code, 404);
    },
  },
  {
    id: "concurrency/no-change-keeps-version",
    title: "a write that changes nothing keeps the resourceVersion",
    source,
    run: async (stage) => {
      const { name } = await changedSandbox(stage);
      // The controller's writes must have settled, so the case asks for two equal writes in a row.
      await stage.eventually("two equal writes keep one version", async () => {
        const write = () => stage.merge("sandboxes", name, { metadata: { labels: { a: "1" } } });
        const [first, second] = [await write(), await write()];
        return textAt(first, "metadata", "resourceVersion") === textAt(second, "metadata", "resourceVersion");
      });
      const { name: secret, current } = await changedSecret(stage);
      const again = await stage.merge("secrets", secret, { metadata: { labels: { a: "1" } } });
      assert.equal(textAt(again, "metadata", "resourceVersion"), current);
    },
  },
  {
    id: "concurrency/merge-stale",
    title: "a merge patch that carries a stale resourceVersion is 409 Conflict",
    source,
    run: async (stage) => {
      const { name, stale } = await changedSecret(stage);
      const body = { metadata: { resourceVersion: stale, labels: { b: "1" } } };
      const { code } = await stage.call("merge", "PATCH", stage.path("secrets", name), { body, type: mergePatch });
      assert.equal(code, 409);
      const { name: sandbox, stale: old } = await changedSandbox(stage);
      const custom = await stage.call("custom", "PATCH", stage.path("sandboxes", sandbox), {
        body: { metadata: { resourceVersion: old, labels: { b: "1" } } },
        type: mergePatch,
      });
      assert.equal(custom.code, 409);
    },
  },
  {
    id: "concurrency/delete-precondition-uid",
    title: "a DELETE whose uid precondition does not hold is 409 and deletes nothing",
    source,
    run: async (stage) => {
      const { name } = await changedSandbox(stage);
      const body = { preconditions: { uid: otherUid } };
      const { code } = await stage.call("custom", "DELETE", stage.path("sandboxes", name), { body });
      assert.equal(code, 409);
      assert.ok((await stage.get("sandboxes", name)) !== undefined);
      const { name: secret } = await changedSecret(stage);
      await stage.call("secret", "DELETE", stage.path("secrets", secret), { body });
      const pod = stage.name("pod");
      await stage.create("pods", podObject(pod));
      await stage.call("pod", "DELETE", stage.path("pods", pod), { body });
      const claim = stage.name("claim");
      await stage.create("persistentvolumeclaims", claimObject(claim));
      await stage.call("claim", "DELETE", stage.path("persistentvolumeclaims", claim), { body });
    },
  },
  {
    id: "concurrency/delete-precondition-version",
    title: "a DELETE whose resourceVersion precondition does not hold is 409 and deletes nothing",
    source,
    run: async (stage) => {
      const { name, stale, uid } = await changedSandbox(stage);
      const body = { propagationPolicy: "Foreground", preconditions: { uid, resourceVersion: stale } };
      const { code } = await stage.call("custom", "DELETE", stage.path("sandboxes", name), { body });
      assert.equal(code, 409);
      assert.ok((await stage.get("sandboxes", name)) !== undefined);
      const { name: secret, stale: old } = await changedSecret(stage);
      const refused = await stage.call("secret", "DELETE", stage.path("secrets", secret), {
        body: { preconditions: { resourceVersion: old } },
      });
      assert.equal(refused.code, 409);
    },
  },
  {
    id: "concurrency/delete-preconditions-hold",
    title: "a DELETE whose preconditions hold deletes",
    source,
    run: async (stage) => {
      const { name, current, uid } = await changedSecret(stage);
      const body = { preconditions: { uid, resourceVersion: current } };
      const { code } = await stage.call("delete", "DELETE", stage.path("secrets", name), { body });
      assert.equal(code, 200);
      assert.equal(await stage.get("secrets", name), undefined);
    },
  },
  {
    id: "concurrency/already-exists",
    title: "a second POST of a name is 409 AlreadyExists, which is told from Conflict by its reason",
    source,
    run: async (stage) => {
      const { name } = await changedSandbox(stage);
      const { body } = await stage.call("sandbox", "POST", stage.path("sandboxes"), { body: sandboxObject(name) });
      assert.equal(at(body, "reason"), "AlreadyExists");
      const { name: secret } = await changedSecret(stage);
      await stage.call("secret", "POST", stage.path("secrets"), { body: secretObject(secret) });
      const pod = stage.name("pod");
      await stage.create("pods", podObject(pod));
      await stage.call("pod", "POST", stage.path("pods"), { body: podObject(pod) });
    },
  },
  {
    id: "concurrency/not-found",
    title: "what is not there is 404 NotFound, in one shape for every verb",
    source,
    run: async (stage) => {
      const name = stage.name("absent");
      for (const plural of ["sandboxes", "pods", "persistentvolumeclaims", "services", "secrets", "sandboxtemplates"]) {
        const { code, body } = await stage.call(`get ${plural}`, "GET", stage.path(plural, name));
        assert.equal(code, 404);
        assert.equal(at(body, "reason"), "NotFound");
      }
      await stage.call("delete", "DELETE", stage.path("sandboxes", name));
      const body = { metadata: { labels: { a: "1" } } };
      await stage.call("merge", "PATCH", stage.path("sandboxes", name), { body, type: mergePatch });
      await stage.call("status", "PATCH", stage.path("sandboxes", name, "status"), { body, type: mergePatch });
    },
  },
  {
    id: "concurrency/create-with-version",
    title: "a POST that carries a resourceVersion is refused",
    source,
    run: async (stage) => {
      const body = secretObject(stage.name("secret"), { resourceVersion: "1" });
      const { code } = await stage.call("secret", "POST", stage.path("secrets"), { body });
      assert.ok(code >= 400);
      const sandbox = sandboxObject(stage.name("sandbox"), {}, { resourceVersion: "1" });
      await stage.call("sandbox", "POST", stage.path("sandboxes"), { body: sandbox });
    },
  },
];
