import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, textAt } from "../suite/json.ts";
import { claimObject, podObject, sandboxObject, secretObject } from "../suite/objects.ts";
import { mergePatch } from "../suite/stage.ts";

const source = fromKubernetes;
const asleep = { operatingMode: "Suspended" };

/** Names, labels, annotations, owners, finalizers. */
export const metadata: readonly ConformanceCase[] = [
  {
    id: "metadata/names",
    title: "names that are no DNS subdomains are 422",
    source,
    run: async (stage) => {
      const names = { capital: "Abc", underscore: "a_b", "leading dash": "-a", "trailing dot": "a.", space: "a b" };
      for (const [step, name] of Object.entries(names)) {
        const { code } = await stage.call(step, "POST", stage.path("sandboxes"), { body: sandboxObject(name, asleep) });
        assert.equal(code, 422);
      }
      const { code } = await stage.call("secret", "POST", stage.path("secrets"), { body: secretObject("A") });
      assert.equal(code, 422);
      await stage.call("pod", "POST", stage.path("pods"), { body: podObject("A_b") });
      await stage.call("service", "POST", stage.path("services"), {
        body: { metadata: { name: "1a" }, spec: { clusterIP: "None", selector: { a: "b" } } },
      });
      await stage.call("claim", "POST", stage.path("persistentvolumeclaims"), { body: claimObject("A") });
    },
  },
  {
    id: "metadata/name-length",
    title: "a name of 253 characters is taken, one of 254 is 422",
    source,
    run: async (stage) => {
      const name = stage.name("long");
      const filled = name + "x".repeat(253 - name.length);
      stage.hide(filled, "<253 characters>");
      const body = (given: string) => ({ body: secretObject(given) });
      assert.equal((await stage.call("253", "POST", stage.path("secrets"), body(filled))).code, 201);
      assert.equal((await stage.call("254", "POST", stage.path("secrets"), body(`${filled}x`))).code, 422);
    },
  },
  {
    id: "metadata/no-name",
    title: "an object without a name is refused",
    source,
    run: async (stage) => {
      const secret = await stage.call("secret", "POST", stage.path("secrets"), {
        body: { kind: "Secret", apiVersion: "v1" },
      });
      assert.equal(secret.code, 422);
      const { code } = await stage.call("sandbox", "POST", stage.path("sandboxes"), {
        body: { ...sandboxObject("x", asleep), metadata: {} },
      });
      assert.equal(code, 422);
    },
  },
  {
    id: "metadata/generate-name",
    title: "generateName makes a name of the prefix and five characters",
    source,
    run: async (stage) => {
      const prefix = stage.name("generated-");
      const made = await stage.create("secrets", { metadata: { generateName: prefix } });
      const name = textAt(made, "metadata", "name");
      assert.match(name.slice(prefix.length), /^[a-z0-9]{5}$/);
      assert.equal(at(made, "metadata", "generateName"), prefix);
      const chosen = stage.name("chosen");
      const both = await stage.create("secrets", { metadata: { name: chosen, generateName: prefix } });
      assert.equal(at(both, "metadata", "name"), chosen);
    },
  },
  {
    id: "metadata/label-rules",
    title: "labels with a wrong key or value are 422",
    source,
    run: async (stage) => {
      const wrong = {
        "value space": { a: "b c" },
        "value long": { a: "x".repeat(64) },
        "key empty": { "": "x" },
        "key slashes": { "a/b/c": "x" },
        "key long": { ["k".repeat(64)]: "x" },
        "prefix capital": { "A.example/b": "x" },
      };
      for (const [step, labels] of Object.entries(wrong)) {
        const body = sandboxObject(stage.name("sandbox"), asleep, { labels });
        const { code } = await stage.call(step, "POST", stage.path("sandboxes"), { body });
        assert.equal(code, 422);
      }
      const right = { "example.com/a": "", b: "x".repeat(63), C_c: "A.b_c-d" };
      await stage.create("sandboxes", sandboxObject(stage.name("right"), asleep, { labels: right }));
    },
  },
  {
    id: "metadata/annotation-rules",
    title: "annotation keys follow the rules of label keys, values are free",
    source,
    run: async (stage) => {
      for (const [step, annotations] of Object.entries({ slashes: { "a/b/c": "x" }, space: { "a b": "x" } })) {
        const body = secretObject(stage.name("secret"), { annotations });
        const { code } = await stage.call(step, "POST", stage.path("secrets"), { body });
        assert.equal(code, 422);
      }
      const annotations = { "Example.com/A": "any text, \u00fc \u{1f600} \n" };
      await stage.call("free", "POST", stage.path("secrets"), {
        body: secretObject(stage.name("free"), { annotations }),
      });
    },
  },
  {
    id: "metadata/annotations-limit",
    title: "annotations hold 256 KiB in all, keys and values together",
    source,
    run: async (stage) => {
      const annotations = (bytes: number) => ({ a: "x".repeat(bytes - 1) });
      const fits = secretObject(stage.name("fits"), { annotations: annotations(262_144) });
      const made = await stage.raw("POST", stage.path("secrets"), { body: fits });
      assert.equal(made.code, 201);
      const { code } = await stage.call("too long", "POST", stage.path("secrets"), {
        body: secretObject(stage.name("long"), { annotations: annotations(262_145) }),
      });
      assert.equal(code, 422);
      const custom = await stage.call("too long, custom", "POST", stage.path("sandboxes"), {
        body: sandboxObject(stage.name("sandbox"), asleep, { annotations: annotations(262_145) }),
      });
      assert.equal(custom.code, 422);
    },
  },
  {
    id: "metadata/non-text-values",
    title: "labels and annotations that are no texts are refused",
    source,
    run: async (stage) => {
      for (const [plural, make] of [
        ["sandboxes", (metadata: object) => sandboxObject(stage.name("sandbox"), asleep, metadata)],
        ["secrets", (metadata: object) => secretObject(stage.name("secret"), metadata)],
      ] as const) {
        const body = make({ annotations: { a: 1 } });
        const { code } = await stage.call(plural, "POST", stage.path(plural), { body });
        assert.ok(code >= 400);
      }
    },
  },
  {
    id: "metadata/two-controllers",
    title: "two owners that control are 422; an owner without uid too",
    source,
    run: async (stage) => {
      const owner = (name: string, more: object = {}) => ({
        apiVersion: "v1",
        kind: "Secret",
        name,
        uid: "11111111-1111-4111-8111-111111111111",
        controller: true,
        ...more,
      });
      const create = (step: string, ownerReferences: object[]) =>
        stage.call(step, "POST", stage.path("secrets"), {
          body: secretObject(stage.name("secret"), { ownerReferences }),
        });
      assert.equal((await create("two", [owner("a"), owner("b")])).code, 422);
      assert.equal((await create("no uid", [owner("a", { uid: "" })])).code, 422);
      assert.equal((await create("no name", [owner("", {})])).code, 422);
    },
  },
  {
    id: "metadata/finalizer-names",
    title: "a finalizer without a domain is refused, at least on built-in kinds",
    source,
    run: async (stage) => {
      const body = secretObject(stage.name("secret"), { finalizers: ["plain"] });
      await stage.call("secret", "POST", stage.path("secrets"), {
        body,
        seen: (answer) => (at(answer, "kind") === "Status" ? answer : "made"),
      });
      const sandbox = sandboxObject(stage.name("sandbox"), asleep, { finalizers: ["not a name"] });
      await stage.call("sandbox", "POST", stage.path("sandboxes"), {
        body: sandbox,
        seen: (answer) => (at(answer, "kind") === "Status" ? answer : "made"),
      });
    },
  },
  {
    id: "metadata/system-fields-on-create",
    title: "uid, creationTimestamp, generation and deletionTimestamp sent with a POST are replaced or ignored",
    source,
    run: async (stage) => {
      const given = {
        uid: "11111111-1111-4111-8111-111111111111",
        creationTimestamp: "2001-01-01T00:00:00Z",
        generation: 77,
        deletionTimestamp: "2001-01-01T00:00:00Z",
        deletionGracePeriodSeconds: 9,
        selfLink: "/somewhere",
      };
      const body = sandboxObject(stage.name("sandbox"), asleep, given);
      const { code, body: made } = await stage.call("create", "POST", stage.path("sandboxes"), { body });
      assert.equal(code, 201);
      for (const [member, value] of Object.entries(given)) assert.notEqual(at(made, "metadata", member), value);
    },
  },
  {
    id: "metadata/terminating-namespace",
    title: "in a namespace that is absent a POST is 404, and the message names the namespace",
    source,
    run: async (stage) => {
      const path = stage.path("secrets").replace(stage.namespace, "conformance-nowhere");
      const { code } = await stage.call("secret", "POST", path, { body: secretObject("a") });
      assert.equal(code, 404);
      const list = await stage.call("list", "GET", path);
      assert.equal(list.code, 200);
    },
  },
  {
    id: "metadata/immutable-name",
    title: "a merge patch that names another object is refused",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const { code } = await stage.call("merge", "PATCH", stage.path("secrets", name), {
        body: { metadata: { name: stage.name("other") } },
        type: mergePatch,
      });
      assert.ok(code >= 400);
    },
  },
  {
    id: "metadata/times",
    title: "times are RFC 3339 in UTC, in whole seconds",
    source,
    run: async (stage) => {
      const made = await stage.create("secrets", secretObject(stage.name("secret")));
      assert.match(textAt(made, "metadata", "creationTimestamp"), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    },
  },
  {
    id: "metadata/uid",
    title: "every object has a uid of its own, in the text form of a UUID",
    source,
    run: async (stage) => {
      const uids = new Set<string>();
      for (let round = 0; round < 5; round++) {
        const made = await stage.create("secrets", secretObject(stage.name("secret")));
        const uid = textAt(made, "metadata", "uid");
        assert.match(uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        uids.add(uid);
      }
      assert.equal(uids.size, 5);
    },
  },
  {
    id: "metadata/object-too-large",
    title: "an object of more than about 1.5 MiB is refused though its request is not too large",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      const annotations = { big: "x".repeat(1_700_000) };
      const podTemplate = { metadata: { annotations }, spec: { containers: [{ name: "a", image: "x" }] } };
      const { code } = await stage.call("create", "POST", stage.path("sandboxes"), {
        body: sandboxObject(name, { ...asleep, podTemplate }),
      });
      assert.ok(code >= 400);
      assert.equal(await stage.get("sandboxes", name), undefined);
    },
  },
];
