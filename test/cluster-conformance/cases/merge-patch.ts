import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, textAt } from "../suite/json.ts";
import { sandboxObject, secretObject } from "../suite/objects.ts";
import { mergePatch } from "../suite/stage.ts";

const source = fromKubernetes;

/** Merge patches, which the Sandbox controller and kubectl write; and bodies in formats that are not served. */
export const mergePatchCases: readonly ConformanceCase[] = [
  {
    id: "merge-patch/null-removes",
    title: "null removes a member, other members stay, a list is replaced whole",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const metadata = { annotations: { a: "1", b: "2" }, labels: { x: "1" }, finalizers: ["conformance.test/a"] };
      await stage.create("secrets", secretObject(name, metadata));
      const body = {
        metadata: { annotations: { a: null, c: "3" }, finalizers: ["conformance.test/b", "conformance.test/c"] },
      };
      const answer = await stage.call("merge", "PATCH", stage.path("secrets", name), { body, type: mergePatch });
      assert.deepEqual(at(answer.body, "metadata", "annotations"), { b: "2", c: "3" });
      const cleared = await stage.call("clear", "PATCH", stage.path("secrets", name), {
        body: { metadata: { annotations: null, finalizers: null } },
        type: mergePatch,
      });
      assert.equal(at(cleared.body, "metadata", "annotations"), undefined);
    },
  },
  {
    id: "merge-patch/adds-parents",
    title: "a merge patch makes the parents that are absent",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const body = { metadata: { annotations: { "holdfast.dev/written-by": "one" } } };
      const { code } = await stage.call("merge", "PATCH", stage.path("secrets", name), { body, type: mergePatch });
      assert.equal(code, 200);
    },
  },
  {
    id: "merge-patch/not-an-object",
    title: "a merge patch that is no object is 400",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name));
      for (const [step, body] of Object.entries({ list: "[]", text: "{", string: '"x"', null: "null" })) {
        await stage.call(step, "PATCH", stage.path("sandboxes", name), {
          body,
          type: mergePatch,
          seen: (answer) => (at(answer, "kind") === "Status" ? answer : "the object"),
        });
      }
    },
  },
  {
    id: "merge-patch/makes-invalid",
    title: "a merge patch that makes a Sandbox invalid is 422 with causes and changes nothing",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name));
      const answer = await stage.call("merge", "PATCH", stage.path("sandboxes", name), {
        body: { spec: { operatingMode: "Asleep" } },
        type: mergePatch,
      });
      assert.equal(answer.code, 422);
      assert.equal(at(answer.body, "details", "causes", 0, "field"), "spec.operatingMode");
      assert.equal(at(await stage.get("sandboxes", name), "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "merge-patch/null-mode-defaults",
    title: "a mode that is removed reads as the default again",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, { operatingMode: "Suspended" }));
      const answer = await stage.merge("sandboxes", name, { spec: { operatingMode: null } });
      assert.equal(at(answer, "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "merge-patch/media-types",
    title: "a patch of another media type is 415 and names the served ones",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name));
      const path = stage.path("sandboxes", name);
      const body = { metadata: { labels: { a: "1" } } };
      const strategic = await stage.call("strategic on a custom resource", "PATCH", path, {
        body,
        type: "application/strategic-merge-patch+json",
      });
      assert.equal(strategic.code, 415);
      const plain = await stage.call("json", "PATCH", path, { body, type: "application/json" });
      assert.equal(plain.code, 415);
      assert.equal(at(await stage.get("sandboxes", name), "metadata", "labels"), undefined);
    },
  },
  {
    id: "merge-patch/body-media-types",
    title: "an object in another media type is 415",
    source,
    run: async (stage) => {
      const body = JSON.stringify(sandboxObject(stage.name("sandbox")));
      for (const type of ["text/plain", "application/xml"]) {
        const { code } = await stage.call(type, "POST", stage.path("sandboxes"), { body, type });
        assert.equal(code, 415);
      }
    },
  },
  {
    id: "merge-patch/yaml-body",
    title: "an object may be sent as YAML",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const body = `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\n`;
      const { code } = await stage.call("create", "POST", stage.path("secrets"), { body, type: "application/yaml" });
      assert.equal(code, 201);
    },
  },
  {
    id: "merge-patch/not-acceptable",
    title: "an answer in a format that is not served is 406",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const { code } = await stage.call("get", "GET", stage.path("secrets", name), { accept: "text/html" });
      assert.equal(code, 406);
    },
  },
  {
    id: "merge-patch/unreadable-body",
    title: "a body that is no JSON, no object or another kind is refused and nothing is made",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      const other = { ...sandboxObject(name), kind: "SandboxTemplate" };
      const version = { ...sandboxObject(name), apiVersion: "agents.x-k8s.io/v9" };
      const elsewhere = sandboxObject(name, {}, { namespace: "elsewhere" });
      const bodies = { cut: '{"kind":', list: "[]", kind: other, version, elsewhere, empty: "" };
      for (const [step, body] of Object.entries(bodies)) {
        const { code } = await stage.call(step, "POST", stage.path("sandboxes"), { body });
        assert.ok(code === 400 || code === 422);
      }
      const secret = { ...secretObject(name), kind: "ConfigMap" };
      await stage.call("built-in kind", "POST", stage.path("secrets"), { body: secret });
      await stage.call("built-in cut", "POST", stage.path("secrets"), { body: '{"kind":' });
      await stage.call("built-in list", "POST", stage.path("secrets"), { body: "[]" });
      await stage.call("built-in empty", "POST", stage.path("secrets"), { body: "" });
      assert.equal(await stage.get("sandboxes", name), undefined);
    },
  },
  {
    id: "merge-patch/too-large",
    title: "a body of more than 3 MiB is 413",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const body = { ...secretObject(name), stringData: { a: "x".repeat(3 * 1024 * 1024 + 10) } };
      const { code } = await stage.call("create", "POST", stage.path("secrets"), { body });
      assert.equal(code, 413);
    },
  },
  {
    id: "merge-patch/version-moves",
    title: "every change moves the resourceVersion, and versions are comparable across kinds",
    source,
    run: async (stage) => {
      const versions: bigint[] = [];
      for (const label of ["a", "b", "c"]) {
        const name = stage.name(label);
        const secret = await stage.create("secrets", secretObject(name));
        versions.push(BigInt(textAt(secret, "metadata", "resourceVersion")));
        const sandbox = await stage.create("sandboxes", sandboxObject(name, { operatingMode: "Suspended" }));
        versions.push(BigInt(textAt(sandbox, "metadata", "resourceVersion")));
      }
      assert.deepEqual(
        [...versions].sort((a, b) => (a < b ? -1 : 1)),
        versions,
      );
      assert.equal(new Set(versions).size, versions.length);
    },
  },
];
