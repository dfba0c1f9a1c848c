import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, type Json, listAt, pick, textAt } from "../suite/json.ts";
import { nobodysNode, podObject, secretObject, unboundPodObject } from "../suite/objects.ts";
import { jsonPatch, mergePatch } from "../suite/stage.ts";

const source = fromKubernetes;
const refusal = (body: Json): Json => (at(body, "kind") === "Status" ? body : "the object");

/** Of a pod, what the product and the controller read. */
const podShape = (body: Json): Json => {
  if (at(body, "kind") === "Status") return body;
  const spec = at(body, "spec");
  return {
    metadata: pick(at(body, "metadata"), "name", "namespace", "labels", "annotations", "generation", "uid"),
    spec: {
      ...pick(
        spec,
        "restartPolicy",
        "terminationGracePeriodSeconds",
        "dnsPolicy",
        "schedulerName",
        "enableServiceLinks",
        "nodeName",
        "automountServiceAccountToken",
      ),
      containers: listAt(spec, "containers").map((container) =>
        pick(
          container,
          "name",
          "image",
          "imagePullPolicy",
          "ports",
          "env",
          "terminationMessagePath",
          "terminationMessagePolicy",
        ),
      ),
    },
    status: pick(at(body, "status"), "phase", "qosClass"),
  };
};

/** Pods as the API keeps them; running them is the node's part. */
export const pods: readonly ConformanceCase[] = [
  {
    id: "pods/defaults",
    title: "a new pod is Pending and has the defaults that the product reads",
    source,
    run: async (stage) => {
      const containers = [
        {
          name: "agent",
          image: "example.invalid/agent:1",
          ports: [{ containerPort: 1024 }],
          env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } }],
        },
      ];
      const body = podObject(stage.name("pod"), { containers, terminationGracePeriodSeconds: undefined });
      const { body: made } = await stage.call("create", "POST", stage.path("pods"), { body, seen: podShape });
      assert.equal(at(made, "status", "phase"), "Pending");
      assert.equal(at(made, "spec", "restartPolicy"), "Always");
      assert.equal(at(made, "spec", "terminationGracePeriodSeconds"), 30);
    },
  },
  {
    id: "pods/pull-policy",
    title: "imagePullPolicy is IfNotPresent for a tag and Always for latest or none",
    source,
    run: async (stage) => {
      const containers = ["example.invalid/a:1", "example.invalid/a:latest", "example.invalid/a"].map(
        (image, index) => ({
          name: `c${index}`,
          image,
        }),
      );
      const made = await stage.create("pods", podObject(stage.name("pod"), { containers }));
      const policies = listAt(made, "spec", "containers").map((container) => at(container, "imagePullPolicy") ?? null);
      stage.note("policies", policies);
      assert.deepEqual(policies, ["IfNotPresent", "Always", "Always"]);
    },
  },
  {
    id: "pods/required",
    title: "a pod without spec, containers, names or images is 422",
    source,
    run: async (stage) => {
      const bodies = {
        "no spec": { metadata: { name: stage.name("pod") } },
        "no containers": podObject(stage.name("pod"), { containers: [] }),
        "no name": podObject(stage.name("pod"), { containers: [{ image: "x" }] }),
        "no image": podObject(stage.name("pod"), { containers: [{ name: "a" }] }),
        "doubled name": podObject(stage.name("pod"), {
          containers: [
            { name: "a", image: "x" },
            { name: "a", image: "x" },
          ],
        }),
        "unknown volume": podObject(stage.name("pod"), {
          containers: [{ name: "a", image: "x", volumeMounts: [{ name: "none", mountPath: "/x" }] }],
        }),
        "restart policy": podObject(stage.name("pod"), { restartPolicy: "Sometimes" }),
        "negative grace": podObject(stage.name("pod"), { terminationGracePeriodSeconds: -1 }),
      };
      for (const [step, body] of Object.entries(bodies)) {
        const { code } = await stage.call(step, "POST", stage.path("pods"), { body, seen: refusal });
        assert.ok(code === 422 || step === "negative grace", step);
      }
    },
  },
  {
    id: "pods/immutable-spec",
    title: "of a pod's spec little may change: not env, command, grace or node; images may",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", podObject(name));
      const change = (step: string, path: string, value: unknown) =>
        stage.call(step, "PATCH", stage.path("pods", name), {
          body: [{ op: "add", path, value }],
          type: jsonPatch,
          seen: (body) => (at(body, "kind") === "Status" ? pick(body, "code", "reason", "status") : "the object"),
        });
      assert.equal((await change("env", "/spec/containers/0/env", [{ name: "A", value: "1" }])).code, 422);
      assert.equal((await change("grace", "/spec/terminationGracePeriodSeconds", 5)).code, 422);
      assert.equal((await change("node", "/spec/nodeName", "another-node")).code, 422);
      assert.equal((await change("command", "/spec/containers/0/command", ["x"])).code, 422);
      assert.equal((await change("image", "/spec/containers/0/image", "example.invalid/agent:2")).code, 200);
      assert.equal((await change("labels", "/metadata/labels", { a: "1" })).code, 200);
      assert.equal((await change("deadline", "/spec/activeDeadlineSeconds", 10)).code, 200);
    },
  },
  {
    id: "pods/active-deadline",
    title: "a pod's deadline may be set and brought forward, not put off, taken away or be less than a second",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", podObject(name));
      const seen = (body: Json): Json =>
        at(body, "kind") === "Status" ? body : { deadline: at(body, "spec", "activeDeadlineSeconds") ?? null };
      const change = (step: string, activeDeadlineSeconds: number | null) =>
        stage.call(step, "PATCH", stage.path("pods", name), {
          body: { spec: { activeDeadlineSeconds } },
          type: mergePatch,
          seen,
        });
      assert.equal((await change("set", 100)).code, 200);
      assert.equal((await change("brought forward", 50)).code, 200);
      assert.equal((await change("the same", 50)).code, 200);
      assert.equal((await change("put off", 51)).code, 422);
      assert.equal((await change("taken away", null)).code, 422);
      assert.equal((await change("none", 0)).code, 422);
      assert.equal((await change("before", -1)).code, 422);
      for (const [step, activeDeadlineSeconds, code] of [
        ["born with none", 0, 422],
        ["born with too much", 2 ** 31, 422],
        ["born with a part", 1.5, 400],
        ["born with a text", "x", 400],
      ] as const) {
        const body = podObject(stage.name("other"), { activeDeadlineSeconds });
        assert.equal((await stage.call(step, "POST", stage.path("pods"), { body, seen })).code, code);
      }
    },
  },
  {
    id: "pods/image-removed",
    title: "an update that takes an image away is 422, and says so twice",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", podObject(name));
      const { code } = await stage.call("patch", "PATCH", stage.path("pods", name), {
        body: [{ op: "replace", path: "/spec/containers/0/image", value: "" }],
        type: jsonPatch,
      });
      assert.equal(code, 422);
    },
  },
  {
    id: "pods/status-subresource",
    title: "phase, addresses and conditions are written by the status endpoint alone, by merge patch and PUT",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", { ...podObject(name), status: { phase: "Running" } });
      assert.equal(at(await stage.get("pods", name), "status", "phase"), "Pending");
      const main = await stage.merge("pods", name, { status: { phase: "Running" } });
      assert.equal(at(main, "status", "phase"), "Pending");
      const status = {
        phase: "Running",
        podIP: "10.1.2.3",
        podIPs: [{ ip: "10.1.2.3" }],
        conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }],
        containerStatuses: [
          {
            name: "agent",
            image: "x",
            imageID: "",
            ready: true,
            restartCount: 3,
            state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
          },
        ],
      };
      const { body } = await stage.call("patch", "PATCH", stage.path("pods", name, "status"), {
        body: { status, spec: { restartPolicy: "Never" }, metadata: { annotations: { ignored: "x" } } },
        type: mergePatch,
        seen: (answer) => ({
          ...pick(at(answer, "status"), "phase", "podIP", "podIPs"),
          conditions: listAt(answer, "status", "conditions").map((item) => pick(item, "type", "status")),
          restarts: at(answer, "status", "containerStatuses", 0, "restartCount") ?? null,
          policy: at(answer, "spec", "restartPolicy") ?? null,
        }),
      });
      assert.equal(at(body, "status", "podIP"), "10.1.2.3");
      const read = await stage.get("pods", name);
      const resourceVersion = textAt(read, "metadata", "resourceVersion");
      const put = await stage.raw("PUT", stage.path("pods", name, "status"), {
        body: { ...podObject(name, {}, { resourceVersion }), status: { phase: "Failed", reason: "Evicted" } },
      });
      assert.equal(put.code, 200);
      assert.equal(at(put.body, "status", "reason"), "Evicted");
      const stale = await stage.call("stale put", "PUT", stage.path("pods", name, "status"), {
        body: { ...podObject(name, {}, { resourceVersion }), status: { phase: "Running" } },
      });
      assert.equal(stale.code, 409);
      const got = await stage.raw("GET", stage.path("pods", name, "status"));
      assert.equal(at(got.body, "kind"), "Pod");
    },
  },
  {
    id: "pods/binding",
    title: "a binding puts a pod on a node and says that it is scheduled; a second one is 409",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", unboundPodObject(name));
      const body = {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name },
        target: { apiVersion: "v1", kind: "Node", name: nobodysNode },
      };
      const first = await stage.call("bind", "POST", stage.path("pods", name, "binding"), { body });
      assert.equal(first.code, 201);
      const bound = await stage.get("pods", name);
      assert.equal(at(bound, "spec", "nodeName"), nobodysNode);
      const conditions = listAt(bound, "status", "conditions").map((item) => pick(item, "type", "status", "reason"));
      stage.note("conditions", conditions);
      const second = await stage.call("again", "POST", stage.path("pods", name, "binding"), { body });
      assert.equal(second.code, 409);
      const other = { ...body, metadata: { name: stage.name("other") } };
      const mistaken = await stage.call("other name", "POST", stage.path("pods", name, "binding"), { body: other });
      assert.equal(mistaken.code, 400);
      const none = stage.name("none");
      const absent = await stage.call("absent", "POST", stage.path("pods", none, "binding"), {
        body: { ...body, metadata: { name: none } },
      });
      assert.ok(absent.code >= 400);
    },
  },
  {
    id: "pods/node-name-by-patch",
    title: "a pod cannot be placed by a patch of its spec: only a binding does",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", unboundPodObject(name));
      const { code } = await stage.call("patch", "PATCH", stage.path("pods", name), {
        body: { spec: { nodeName: nobodysNode } },
        type: mergePatch,
        seen: (body) => pick(body, "code", "reason"),
      });
      assert.equal(code, 422);
    },
  },
  {
    id: "pods/field-validation",
    title: "unknown members of a pod are dropped, with a warning when asked for, refused when strict",
    source,
    run: async (stage) => {
      const create = (step: string, fieldValidation: string) =>
        stage.call(step, "POST", stage.path("pods"), {
          body: podObject(stage.name("pod"), { invented: 1 }),
          query: { fieldValidation },
          seen: refusal,
        });
      assert.equal((await create("strict", "Strict")).code, 400);
      const warned = await create("warn", "Warn");
      assert.equal(warned.code, 201);
      assert.equal(at(warned.body, "spec", "invented"), undefined);
    },
  },
  {
    id: "pods/list-by-owner",
    title: "a pod's owner reference is kept as it was sent",
    source,
    run: async (stage) => {
      const [owner, name] = [stage.name("owner"), stage.name("pod")];
      const secret = await stage.create("secrets", secretObject(owner));
      const reference = {
        apiVersion: "v1",
        kind: "Secret",
        name: owner,
        uid: textAt(secret, "metadata", "uid"),
        controller: true,
        blockOwnerDeletion: true,
      };
      const pod = await stage.create("pods", podObject(name, {}, { ownerReferences: [reference] }));
      assert.deepEqual(at(pod, "metadata", "ownerReferences"), [reference]);
    },
  },
  {
    id: "pods/dry-run",
    title: "a dry run answers as if it had been done and keeps nothing, or is refused as a whole",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const query = { dryRun: "All" };
      const { code } = await stage.call("create", "POST", stage.path("secrets"), { body: secretObject(name), query });
      assert.equal(code, 201);
      assert.equal(await stage.get("secrets", name), undefined);
      await stage.create("secrets", secretObject(name));
      const merge = await stage.call("merge", "PATCH", stage.path("secrets", name), {
        body: { metadata: { labels: { a: "1" } } },
        type: mergePatch,
        query,
      });
      assert.equal(at(merge.body, "metadata", "labels", "a"), "1");
      assert.equal(at(await stage.get("secrets", name), "metadata", "labels"), undefined);
      await stage.call("delete", "DELETE", stage.path("secrets", name), { query });
      assert.ok((await stage.get("secrets", name)) !== undefined);
      await stage.call("delete by body", "DELETE", stage.path("secrets", name), { body: { dryRun: ["All"] } });
      assert.ok((await stage.get("secrets", name)) !== undefined);
      await stage.call("unknown", "DELETE", stage.path("secrets", name), { query: { dryRun: "Some" } });
      assert.ok((await stage.get("secrets", name)) !== undefined);
    },
  },
];
