import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import type { Answer } from "../suite/http-client.ts";
import { at, isObject, type Json, pick, textAt } from "../suite/json.ts";
import { claimSpec, podTemplate, sandboxObject, secretObject } from "../suite/objects.ts";
import { jsonPatch, type Stage } from "../suite/stage.ts";

const source = fromKubernetes;

const writtenBy = "holdfast.dev/written-by";
const writtenByPath = "/metadata/annotations/holdfast.dev~1written-by";

async function annotatedSandbox(stage: Stage, spec: object = {}): Promise<{ name: string; sandbox: Json }> {
  const name = stage.name("sandbox");
  const annotations = { [writtenBy]: "one" };
  const sandbox = await stage.create("sandboxes", sandboxObject(name, spec, { annotations }));
  return { name, sandbox };
}

function patch(stage: Stage, step: string, name: string, body: unknown, plural = "sandboxes"): Promise<Answer> {
  return stage.call(step, "PATCH", stage.path(plural, name), { body, type: jsonPatch, seen: statusOrMode });
}

/** Of an object, what a patch of the product changes; a refusal whole. */
function statusOrMode(body: Json): Json {
  if (at(body, "kind") === "Status") return body;
  const all = at(body, "metadata", "annotations");
  const ours = Object.keys(isObject(all) ? all : {}).filter((key) => !key.startsWith("agents.x-k8s.io/"));
  return { mode: at(body, "spec", "operatingMode") ?? null, annotations: pick(all, ...ours) };
}

const suspend = { op: "add", path: "/spec/operatingMode", value: "Suspended" };

/** JSON Patch, the only patch that the product writes. */
export const jsonPatchCases: readonly ConformanceCase[] = [
  {
    id: "json-patch/tests-hold",
    title: "a patch whose tests hold is applied whole: uid, escaped annotations, mode",
    source,
    run: async (stage) => {
      const metadata = { annotations: { "plain~key": "tilde" } };
      const { name, sandbox } = await annotatedSandbox(stage, { podTemplate: podTemplate({}, metadata) });
      const { code, body } = await patch(stage, "patch", name, [
        { op: "test", path: "/metadata/uid", value: textAt(sandbox, "metadata", "uid") },
        { op: "test", path: writtenByPath, value: "one" },
        { op: "test", path: "/spec/podTemplate/metadata/annotations/plain~0key", value: "tilde" },
        { op: "test", path: "/spec/operatingMode", value: "Running" },
        { op: "add", path: writtenByPath, value: "two" },
        suspend,
      ]);
      assert.equal(code, 200);
      assert.equal(at(body, "spec", "operatingMode"), "Suspended");
      assert.equal(at(body, "metadata", "annotations", writtenBy), "two");
    },
  },
  {
    id: "json-patch/test-fails-annotation",
    title: "a failed test of an annotation is 422 and nothing is written",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const { code } = await patch(stage, "patch", name, [{ op: "test", path: writtenByPath, value: "x" }, suspend]);
      assert.equal(code, 422);
      assert.equal(at(await stage.get("sandboxes", name), "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "json-patch/test-fails-last",
    title: "a failed test after mutations undoes them: a patch is all or nothing",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const { code } = await patch(stage, "patch", name, [suspend, { op: "test", path: writtenByPath, value: "x" }]);
      assert.equal(code, 422);
      assert.equal(at(await stage.get("sandboxes", name), "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "json-patch/test-fails-uid",
    title: "a failed test of /metadata/uid is 422",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const value = "11111111-1111-4111-8111-111111111111";
      const { code } = await patch(stage, "patch", name, [{ op: "test", path: "/metadata/uid", value }, suspend]);
      assert.equal(code, 422);
    },
  },
  {
    id: "json-patch/test-version",
    title: "a test of /metadata/resourceVersion holds for the current one and is 422 for a stale one",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const made = await stage.create("secrets", secretObject(name));
      const stale = textAt(made, "metadata", "resourceVersion");
      const body = (value: string) => [
        { op: "test", path: "/metadata/resourceVersion", value },
        { op: "add", path: "/metadata/labels", value: { a: "1" } },
      ];
      assert.equal((await patch(stage, "current", name, body(stale), "secrets")).code, 200);
      const { code } = await patch(stage, "stale", name, body(stale), "secrets");
      assert.equal(code, 422);
    },
  },
  {
    id: "json-patch/test-absent",
    title:
      "a test of an absent member holds for null and for no value, and is 422 for any other and below an absent parent",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const absent = "/metadata/annotations/absent";
      assert.equal((await patch(stage, "value", name, [{ op: "test", path: absent, value: "x" }])).code, 422);
      await patch(stage, "null", name, [{ op: "test", path: absent, value: null }]);
      await patch(stage, "no value", name, [{ op: "test", path: absent }]);
      await patch(stage, "absent parent", name, [{ op: "test", path: "/spec/nothing/below", value: "x" }]);
    },
  },
  {
    id: "json-patch/test-objects",
    title: "a test compares objects member by member, whatever their order",
    source,
    run: async (stage) => {
      const value = { zebra: "tilde", [writtenBy]: "one" };
      const secret = stage.name("secret");
      await stage.create("secrets", secretObject(secret, { annotations: value }));
      const reversed = Object.fromEntries(Object.entries(value).reverse());
      for (const [step, tested] of Object.entries({ sent: value, reversed })) {
        const body = [{ op: "test", path: "/metadata/annotations", value: tested }];
        assert.equal((await patch(stage, step, secret, body, "secrets")).code, 200);
      }
      const part = [{ op: "test", path: "/metadata/annotations", value: { zebra: "tilde" } }];
      assert.equal((await patch(stage, "part", secret, part, "secrets")).code, 422);
    },
  },
  {
    id: "json-patch/add-absent-parent",
    title: "an add below an absent parent is 422: the whole map has to be added",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const body = [{ op: "add", path: writtenByPath, value: "one" }];
      assert.equal((await patch(stage, "member", name, body, "secrets")).code, 422);
      const whole = [{ op: "add", path: "/metadata/annotations", value: { [writtenBy]: "one" } }];
      assert.equal((await patch(stage, "map", name, whole, "secrets")).code, 200);
    },
  },
  {
    id: "json-patch/replace-absent",
    title: "remove of what is absent is 422, while replace adds it: neither tells whether it was there",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const path = "/metadata/annotations/absent";
      assert.equal((await patch(stage, "remove", name, [{ op: "remove", path }])).code, 422);
      assert.equal((await patch(stage, "replace", name, [{ op: "replace", path, value: "x" }])).code, 200);
      const below = [{ op: "replace", path: "/spec/nothing/below", value: "x" }];
      assert.equal((await patch(stage, "replace below", name, below)).code, 422);
      await patch(stage, "replace spec member", name, [{ op: "replace", path: "/spec/service", value: true }]);
      const added = await patch(stage, "add", name, [{ op: "add", path: writtenByPath, value: "two" }]);
      assert.equal(at(added.body, "metadata", "annotations", writtenBy), "two");
      const removed = await patch(stage, "remove present", name, [{ op: "remove", path: writtenByPath }]);
      assert.equal(at(removed.body, "metadata", "annotations", writtenBy), undefined);
    },
  },
  {
    id: "json-patch/move-copy",
    title: "move and copy are applied; of what is absent they are 422",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const to = "/metadata/annotations/copied";
      assert.equal((await patch(stage, "copy", name, [{ op: "copy", from: writtenByPath, path: to }])).code, 200);
      assert.equal(
        (await patch(stage, "move", name, [{ op: "move", from: to, path: "/metadata/annotations/moved" }])).code,
        200,
      );
      const from = "/metadata/annotations/absent";
      await patch(stage, "copy absent", name, [{ op: "copy", from, path: to }]);
      await patch(stage, "move absent", name, [{ op: "move", from, path: to }]);
    },
  },
  {
    id: "json-patch/not-a-patch",
    title: "a document that is no patch is 400",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      for (const [step, body] of Object.entries({ object: { op: "add" }, text: "{", string: '"x"', number: "1" })) {
        const { code } = await patch(stage, step, name, body);
        assert.equal(code, 400);
      }
    },
  },
  {
    id: "json-patch/odd-operations",
    title: "operations that cannot be read are refused and nothing is written",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const bodies = {
        "unknown op": [{ op: "invent", path: "/metadata/labels", value: {} }],
        "no op": [{ path: "/metadata/labels", value: {} }],
        "no path": [{ op: "add", value: {} }],
        "relative path": [{ op: "add", path: "metadata/labels", value: {} }],
        "no value": [{ op: "add", path: "/metadata/labels" }],
      };
      for (const [step, body] of Object.entries(bodies)) await patch(stage, step, name, body);
      assert.equal(at(await stage.get("sandboxes", name), "metadata", "labels"), undefined);
    },
  },
  {
    id: "json-patch/empty",
    title: "an empty patch answers with the object as it is",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const made = await stage.create("secrets", secretObject(name));
      const { code, body } = await patch(stage, "patch", name, [], "secrets");
      assert.equal(code, 200);
      assert.equal(textAt(body, "metadata", "resourceVersion"), textAt(made, "metadata", "resourceVersion"));
    },
  },
  {
    id: "json-patch/makes-invalid",
    title: "a patch that makes the object invalid is 422 with causes, which a failed test has not",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage, {
        volumeClaimTemplates: [{ metadata: { name: "workspace" }, spec: claimSpec() }],
      });
      const mode = await patch(stage, "enum", name, [{ op: "add", path: "/spec/operatingMode", value: "Asleep" }]);
      assert.equal(mode.code, 422);
      assert.ok(at(mode.body, "details", "causes") !== undefined);
      await patch(stage, "type", name, [{ op: "add", path: "/spec/service", value: "yes" }]);
      await patch(stage, "required", name, [{ op: "remove", path: "/spec/podTemplate" }]);
      await patch(stage, "immutable", name, [{ op: "remove", path: "/spec/volumeClaimTemplates" }]);
    },
  },
  {
    id: "json-patch/whole-template",
    title: "a pod template is replaced whole, and the claims beside it stay as they were sent",
    source,
    run: async (stage) => {
      const storage = "1024Mi"; // a client that wrote 1Gi instead would trip the immutability
      const volumeClaimTemplates = [{ metadata: { name: "workspace" }, spec: claimSpec(storage) }];
      const { name } = await annotatedSandbox(stage, { operatingMode: "Suspended", volumeClaimTemplates });
      const value = { spec: { containers: [{ name: "other", image: "example.invalid/other:2" }] } };
      const { code, body } = await stage.call("patch", "PATCH", stage.path("sandboxes", name), {
        type: jsonPatch,
        body: [
          { op: "test", path: "/spec/operatingMode", value: "Suspended" },
          { op: "add", path: "/spec/podTemplate", value },
        ],
        seen: (answer) => at(answer, "spec") ?? null,
      });
      assert.equal(code, 200);
      assert.equal(at(body, "spec", "volumeClaimTemplates", 0, "spec", "resources", "requests", "storage"), "1024Mi");
    },
  },
  {
    id: "json-patch/system-fields",
    title: "uid, creationTimestamp, generation and selfLink cannot be chosen by a patch",
    source,
    run: async (stage) => {
      const { name, sandbox } = await annotatedSandbox(stage);
      const add = (step: string, path: string, value: unknown) =>
        patch(stage, step, name, [{ op: "add", path, value }]);
      await add("uid", "/metadata/uid", "11111111-1111-4111-8111-111111111111");
      await add("creation", "/metadata/creationTimestamp", "2001-01-01T00:00:00Z");
      await add("generation", "/metadata/generation", 77);
      await add("self link", "/metadata/selfLink", "/somewhere");
      await add("deletion", "/metadata/deletionTimestamp", "2001-01-01T00:00:00Z");
      const now = await stage.get("sandboxes", name);
      for (const member of ["uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp"]) {
        assert.deepEqual(at(now, "metadata", member), at(sandbox, "metadata", member));
      }
    },
  },
  {
    id: "json-patch/rename",
    title: "a patch that changes name or namespace is refused",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const other = stage.name("other");
      const renamed = await patch(stage, "name", name, [{ op: "add", path: "/metadata/name", value: other }]);
      assert.ok(renamed.code >= 400);
      const moved = await patch(stage, "namespace", name, [
        { op: "add", path: "/metadata/namespace", value: "elsewhere" },
      ]);
      assert.ok(moved.code >= 400);
      const kind = await patch(stage, "kind", name, [{ op: "add", path: "/kind", value: "Other" }]);
      assert.ok(kind.code >= 400);
    },
  },
  {
    id: "json-patch/status-subresource",
    title: "a JSON Patch of the status writes the status alone",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage, { operatingMode: "Suspended" });
      const body = [suspend, { op: "add", path: "/spec/operatingMode", value: "Running" }];
      const { code } = await stage.call("patch", "PATCH", stage.path("sandboxes", name, "status"), {
        body,
        type: jsonPatch,
        seen: statusOrMode,
      });
      assert.equal(code, 200);
      assert.equal(at(await stage.get("sandboxes", name), "spec", "operatingMode"), "Suspended");
    },
  },
  {
    id: "json-patch/too-many",
    title: "a patch of more than 10,000 operations is 413",
    source,
    run: async (stage) => {
      const { name } = await annotatedSandbox(stage);
      const one = { op: "test", path: writtenByPath, value: "one" };
      const { code } = await patch(
        stage,
        "patch",
        name,
        Array.from({ length: 10_001 }, () => one),
      );
      assert.equal(code, 413);
    },
  },
];
