import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, type Json, listAt, pick, textAt } from "../suite/json.ts";
import { claimObject, secretObject } from "../suite/objects.ts";
import { jsonPatch, mergePatch } from "../suite/stage.ts";

const source = fromKubernetes;
const briefRefusal = (body: Json): Json =>
  at(body, "kind") === "Status" ? pick(body, "code", "reason", "status") : "the object";

/** The other built-in kinds that the product, the controller or the node touch. */
export const otherKinds: readonly ConformanceCase[] = [
  {
    id: "claims/defaults",
    title: "a new claim is Pending, of volumeMode Filesystem, and protected by a finalizer",
    source,
    needs: ["claim-protection"],
    run: async (stage) => {
      const body = claimObject(stage.name("claim"));
      const { body: made } = await stage.call("create", "POST", stage.path("persistentvolumeclaims"), { body });
      assert.equal(at(made, "spec", "volumeMode"), "Filesystem");
      assert.equal(at(made, "status", "phase"), "Pending");
      const block = claimObject(stage.name("block"), { volumeMode: "Block" });
      const raw = await stage.create("persistentvolumeclaims", block);
      assert.equal(at(raw, "spec", "volumeMode"), "Block");
    },
  },
  {
    id: "claims/required",
    title: "a claim without access modes or a size is 422",
    source,
    run: async (stage) => {
      const bodies = {
        "no modes": claimObject(stage.name("claim"), { accessModes: [] }),
        "no size": claimObject(stage.name("claim"), { resources: {} }),
        "zero size": claimObject(stage.name("claim"), { resources: { requests: { storage: "0" } } }),
        mode: claimObject(stage.name("claim"), { volumeMode: "Tape" }),
        "access mode": claimObject(stage.name("claim"), { accessModes: ["WriteSometimes"] }),
      };
      for (const [step, body] of Object.entries(bodies)) {
        const { code } = await stage.call(step, "POST", stage.path("persistentvolumeclaims"), { body });
        assert.equal(code, 422);
      }
    },
  },
  {
    id: "claims/immutable",
    title: "a claim's spec cannot be changed after it was made",
    source,
    run: async (stage) => {
      const name = stage.name("claim");
      await stage.create("persistentvolumeclaims", claimObject(name));
      const change = (step: string, spec: object) =>
        stage.call(step, "PATCH", stage.path("persistentvolumeclaims", name), {
          body: { spec },
          type: mergePatch,
          seen: briefRefusal,
        });
      assert.equal((await change("modes", { accessModes: ["ReadWriteMany"] })).code, 422);
      assert.equal((await change("mode", { volumeMode: "Block" })).code, 422);
      assert.equal((await change("class", { storageClassName: "other" })).code, 422);
      assert.ok((await change("smaller", { resources: { requests: { storage: "1Mi" } } })).code >= 400);
    },
  },
  {
    id: "claims/status",
    title: "a claim is bound by its status and its volumeName, which may be written once",
    source,
    run: async (stage) => {
      const name = stage.name("claim");
      // Of a class that is nobody's, so that no cluster binds it first.
      await stage.create("persistentvolumeclaims", claimObject(name));
      const named = await stage.merge("persistentvolumeclaims", name, { spec: { volumeName: "conformance-volume" } });
      assert.equal(at(named, "spec", "volumeName"), "conformance-volume");
      assert.equal(at(named, "status", "phase"), "Pending");
      const status = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
      const bound = await stage.merge("persistentvolumeclaims", name, { status }, "status");
      assert.equal(at(bound, "status", "phase"), "Bound");
      const { code } = await stage.call("volume again", "PATCH", stage.path("persistentvolumeclaims", name), {
        body: { spec: { volumeName: "another-volume" } },
        type: mergePatch,
        seen: briefRefusal,
      });
      assert.equal(code, 422);
    },
  },
  {
    id: "claims/resize",
    title: "a bound claim of no resizable class is not grown (403) nor made less than it has (422)",
    source,
    run: async (stage) => {
      const name = stage.name("claim");
      // It names its volume and a class of nobody's, so that no cluster binds it meanwhile.
      await stage.create("persistentvolumeclaims", claimObject(name, { volumeName: "conformance-volume" }));
      const ask = (step: string, spec: object, seen?: (body: Json) => Json) =>
        stage.call(step, "PATCH", stage.path("persistentvolumeclaims", name), {
          body: { spec },
          type: mergePatch,
          ...(seen === undefined ? {} : { seen }),
        });
      const storage = (amount: string) => ({ resources: { requests: { storage: amount } } });
      assert.equal((await ask("grow unbound", storage("2Gi"), briefRefusal)).code, 422);
      const status = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
      await stage.merge("persistentvolumeclaims", name, { status }, "status");
      assert.equal((await ask("grow", storage("2Gi"))).code, 403);
      assert.equal((await ask("grow by decimals", storage("1100M"))).code, 403);
      assert.equal((await ask("shrink", storage("1Mi"))).code, 422);
      assert.equal((await ask("to nothing", storage("0"))).code, 422);
      assert.equal((await ask("the same", storage("1024Mi"), briefRefusal)).code, 200);
      assert.equal((await ask("grow and more", { ...storage("2Gi"), volumeMode: "Block" }, briefRefusal)).code, 422);
      const limits = { resources: { limits: { storage: "9Gi" } } };
      assert.equal((await ask("limits", limits, briefRefusal)).code, 422);
    },
  },
  {
    id: "claims/amounts",
    title: "an amount that is none is 400, one below nothing 422",
    source,
    run: async (stage) => {
      const ask = async (step: string, storage: unknown) => {
        const body = claimObject(stage.name("claim"), { resources: { requests: { storage } } });
        return (await stage.call(step, "POST", stage.path("persistentvolumeclaims"), { body })).code;
      };
      assert.equal(await ask("spaced", "10 GB"), 400);
      assert.equal(await ask("unit", "1GB"), 400);
      assert.equal(await ask("empty", ""), 400);
      assert.equal(await ask("both", "1e3Gi"), 400);
      assert.equal(await ask("bool", true), 400);
      assert.equal(await ask("negative", "-1Gi"), 422);
    },
  },
  {
    id: "services/headless",
    title: "a headless Service is completed: type, clusterIPs, families, affinity, port protocol and target",
    source,
    run: async (stage) => {
      const body = {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: stage.name("service"), labels: { a: "1" } },
        spec: { clusterIP: "None", selector: { a: "b" }, ports: [{ name: "agent", port: 1024 }] },
      };
      const { code, body: made } = await stage.call("create", "POST", stage.path("services"), { body });
      assert.equal(code, 201);
      assert.deepEqual(at(made, "spec", "clusterIPs"), ["None"]);
    },
  },
  {
    id: "services/without-ports",
    title: "a headless Service may have no ports",
    source,
    run: async (stage) => {
      const body = { metadata: { name: stage.name("service") }, spec: { clusterIP: "None", selector: { a: "b" } } };
      const { code } = await stage.call("create", "POST", stage.path("services"), { body });
      assert.equal(code, 201);
    },
  },
  {
    id: "services/cluster-ip-fixed",
    title: "a Service's clusterIP cannot be changed",
    source,
    run: async (stage) => {
      const name = stage.name("service");
      await stage.create("services", { metadata: { name }, spec: { clusterIP: "None", selector: { a: "b" } } });
      const { code } = await stage.call("change", "PATCH", stage.path("services", name), {
        body: { spec: { clusterIP: "10.96.77.77", clusterIPs: ["10.96.77.77"] } },
        type: mergePatch,
        seen: briefRefusal,
      });
      assert.equal(code, 422);
      const changed = await stage.merge("services", name, { spec: { selector: { a: "c" }, ports: [{ port: 80 }] } });
      assert.equal(at(changed, "spec", "ports", 0, "targetPort"), 80);
    },
  },
  {
    id: "services/invalid",
    title: "a Service with a port out of range, doubled, or unnamed among several is 422",
    source,
    run: async (stage) => {
      const create = (step: string, ports: object[]) =>
        stage.call(step, "POST", stage.path("services"), {
          body: { metadata: { name: stage.name("service") }, spec: { clusterIP: "None", selector: { a: "b" }, ports } },
          seen: briefRefusal,
        });
      assert.equal((await create("range", [{ port: 70_000 }])).code, 422);
      assert.equal((await create("unnamed", [{ port: 1 }, { port: 2 }])).code, 422);
      assert.equal(
        (
          await create("doubled", [
            { name: "a", port: 1 },
            { name: "b", port: 1 },
          ])
        ).code,
        422,
      );
      assert.equal((await create("name", [{ name: "No_Name", port: 1 }])).code, 422);
    },
  },
  {
    id: "secrets/data",
    title: "stringData ends up in data as base64, and is not answered; the type is Opaque",
    source,
    run: async (stage) => {
      const body = { ...secretObject(stage.name("secret")), stringData: { a: "plain" }, data: { b: "Yg==" } };
      const { body: made } = await stage.call("create", "POST", stage.path("secrets"), { body });
      assert.deepEqual(at(made, "data"), { a: "cGxhaW4=", b: "Yg==" });
      assert.equal(at(made, "stringData"), undefined);
      assert.equal(at(made, "type"), "Opaque");
    },
  },
  {
    id: "secrets/invalid",
    title: "data that is no base64 is refused, a key that is no file name is 422, and the type is fixed",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const base64 = await stage.call("base64", "POST", stage.path("secrets"), {
        body: { ...secretObject(stage.name("secret")), data: { a: "%" } },
        seen: briefRefusal,
      });
      assert.ok(base64.code >= 400);
      const key = await stage.call("key", "POST", stage.path("secrets"), {
        body: { ...secretObject(stage.name("secret")), data: { "a/b": "Yg==" } },
        seen: briefRefusal,
      });
      assert.equal(key.code, 422);
      await stage.create("secrets", secretObject(name));
      const { code } = await stage.call("type", "PATCH", stage.path("secrets", name), {
        body: { type: "conformance.test/other" },
        type: mergePatch,
        seen: briefRefusal,
      });
      assert.equal(code, 422);
    },
  },
  {
    id: "secrets/other-kind",
    title: "a body of another kind or version is 400, a patch that makes one 422; an empty kind is an absent one",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const path = stage.path("secrets", name);
      await stage.create("secrets", secretObject(name));
      const merge = (step: string, body: object) =>
        stage.call(step, "PATCH", path, { body, type: mergePatch, seen: briefRefusal });
      assert.equal((await merge("patched kind", { kind: "ConfigMap" })).code, 422);
      assert.equal((await merge("patched version", { apiVersion: "v2" })).code, 422);
      assert.equal((await merge("no kind", { kind: null })).code, 200);
      assert.equal((await merge("empty kind", { kind: "" })).code, 200);
      assert.equal((await merge("type of a number", { type: 7 })).code, 422);
      assert.equal((await merge("data of a number", { data: { a: 7 } })).code, 422);
      assert.equal((await merge("data of a list", { data: [] })).code, 422);
      assert.equal((await merge("no base64", { data: { a: "%" } })).code, 422);
      const body = [{ op: "replace", path: "/kind", value: "ConfigMap" }];
      const json = await stage.call("json patch", "PATCH", path, { body, type: jsonPatch, seen: briefRefusal });
      assert.equal(json.code, 422);
      const put = await stage.call("put", "PUT", path, { body: { ...secretObject(name), kind: "ConfigMap" } });
      assert.equal(put.code, 400);
      const other = { ...secretObject(stage.name("other")), apiVersion: "v2" };
      assert.equal((await stage.call("post", "POST", stage.path("secrets"), { body: other })).code, 400);
    },
  },
  {
    id: "secrets/immutable",
    title: "a Secret that was made immutable keeps its data and stays so",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", { ...secretObject(name), immutable: true });
      const merge = (step: string, body: object) =>
        stage.call(step, "PATCH", stage.path("secrets", name), { body, type: mergePatch });
      assert.equal((await merge("mutable", { immutable: false })).code, 422);
      assert.equal((await merge("data", { data: { a: "Yg==" } })).code, 422);
      assert.equal((await merge("both", { immutable: null, data: { a: "Yg==" } })).code, 422);
      const labelled = await stage.merge("secrets", name, { metadata: { labels: { a: "1" } } });
      assert.equal(at(labelled, "metadata", "labels", "a"), "1");
    },
  },
  {
    id: "events/by-object",
    title: "an Event is kept and selected by the object that it is about",
    source,
    run: async (stage) => {
      const name = stage.name("event");
      const about = { apiVersion: "v1", kind: "Pod", namespace: stage.namespace, name: stage.name("pod"), uid: name };
      await stage.create("events", {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name },
        involvedObject: about,
        reason: "Tested",
        message: "a message",
        type: "Warning",
        source: { component: "conformance" },
        firstTimestamp: "2026-01-01T00:00:00Z",
        lastTimestamp: "2026-01-01T00:00:00Z",
        count: 1,
      });
      const { body } = await stage.call("list", "GET", stage.path("events"), {
        query: { fieldSelector: `involvedObject.uid=${name},reason=Tested,type=Warning` },
      });
      assert.equal(textAt(body, "items", 0, "message"), "a message");
    },
  },
  {
    id: "events/other-namespace",
    title: "an Event about an object of another namespace is refused",
    source,
    run: async (stage) => {
      const { code } = await stage.call("create", "POST", stage.path("events"), {
        body: {
          metadata: { name: stage.name("event") },
          involvedObject: { kind: "Pod", namespace: "elsewhere", name: "x" },
          reason: "Tested",
        },
        seen: briefRefusal,
      });
      assert.ok(code >= 400);
    },
  },
  {
    id: "network-policies/kept",
    title: "a NetworkPolicy is kept, listed and has a generation that moves with its spec",
    source,
    run: async (stage) => {
      const name = stage.name("policy");
      const body = {
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name },
        spec: {
          podSelector: { matchLabels: { a: "b" } },
          policyTypes: ["Ingress"],
          ingress: [{ from: [{ podSelector: { matchLabels: { c: "d" } } }], ports: [{ port: 1024 }] }],
        },
      };
      const { body: made } = await stage.call("create", "POST", stage.path("networkpolicies"), { body });
      assert.equal(at(made, "metadata", "generation"), 1);
      const changed = await stage.merge("networkpolicies", name, { spec: { ingress: null } });
      assert.equal(at(changed, "metadata", "generation"), 2);
      const list = await stage.do("GET", stage.path("networkpolicies"), {
        query: { fieldSelector: `metadata.name=${name}` },
      });
      assert.equal(listAt(list, "items").length, 1);
    },
  },
  {
    id: "network-policies/default-types",
    title: "a NetworkPolicy that names no types isolates ingress, and egress where it has egress rules",
    source,
    run: async (stage) => {
      const create = async (step: string, spec: object) => {
        const made = await stage.create("networkpolicies", {
          metadata: { name: stage.name("policy") },
          spec: { podSelector: {}, ...spec },
        });
        stage.note(step, at(made, "spec") ?? null);
      };
      await create("nothing", {});
      await create("egress", { egress: [{}] });
    },
  },
  {
    id: "namespaces/new",
    title: "a new namespace is Active and labelled with its name",
    source,
    run: async (stage) => {
      const name = stage.name("space");
      const { body } = await stage.call("create", "POST", stage.path("namespaces"), { body: { metadata: { name } } });
      assert.equal(at(body, "status", "phase"), "Active");
    },
  },
  {
    id: "namespaces/delete-empty",
    title: "an empty namespace too is Terminating first, and gone when it was seen to be empty",
    source,
    needs: ["namespaces"],
    run: async (stage) => {
      const name = stage.name("space");
      await stage.create("namespaces", { metadata: { name } });
      const { code, body } = await stage.call("delete", "DELETE", stage.path("namespaces", name));
      assert.equal(code, 200);
      assert.equal(at(body, "status", "phase"), "Terminating");
      assert.ok(textAt(body, "metadata", "deletionTimestamp") !== "");
      await stage.untilGone("namespaces", name);
    },
  },
  {
    id: "namespaces/default-kept",
    title: "the default namespace cannot be deleted",
    source,
    run: async (stage) => {
      const query = { dryRun: "All" }; // lest it could
      const { code } = await stage.call("delete", "DELETE", stage.path("namespaces", "default"), { query });
      assert.equal(code, 403);
    },
  },
];
