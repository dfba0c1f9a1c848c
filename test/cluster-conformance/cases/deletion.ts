import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, type Json, listAt, textAt } from "../suite/json.ts";
import { claimObject, ownerOf, podObject, sandboxObject, secretObject, unboundPodObject } from "../suite/objects.ts";
import { everywhere } from "../suite/resource-paths.ts";
import type { Stage } from "../suite/stage.ts";

const source = fromKubernetes;
const asleep = { operatingMode: "Suspended" };
const held = ["conformance.test/hold"];

/** A Secret and one that it owns. */
async function family(
  stage: Stage,
  more: { parent?: object; child?: object; owner?: object } = {},
): Promise<{ parent: string; child: string }> {
  const [parent, child] = [stage.name("parent"), stage.name("child")];
  const owner = await stage.create("secrets", secretObject(parent, more.parent));
  const ownerReferences = [ownerOf(owner, { blockOwnerDeletion: true, ...more.owner })];
  await stage.create("secrets", secretObject(child, { ownerReferences, ...more.child }));
  return { parent, child };
}

const remove = (stage: Stage, step: string, plural: string, name: string, body?: object) =>
  stage.call(step, "DELETE", stage.path(plural, name), body === undefined ? {} : { body });

const isTerminating = (object: Json | undefined): boolean => at(object, "metadata", "deletionTimestamp") !== undefined;

/** Deletion: answers, finalizers, grace, dependents. */
export const deletion: readonly ConformanceCase[] = [
  {
    id: "deletion/answers",
    title: "a DELETE that completes answers with a Status, or with the object for pods, claims and services",
    source,
    run: async (stage) => {
      const secret = stage.name("secret");
      await stage.create("secrets", secretObject(secret));
      const gone = await remove(stage, "secret", "secrets", secret);
      assert.equal(at(gone.body, "status"), "Success");
      const sandbox = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(sandbox, asleep));
      const custom = await remove(stage, "sandbox", "sandboxes", sandbox);
      assert.equal(at(custom.body, "status"), "Success");
      const pod = stage.name("pod");
      await stage.create("pods", unboundPodObject(pod));
      const seen = (body: Json): Json => ({ kind: at(body, "kind") ?? null, metadata: at(body, "metadata") ?? null });
      await stage.call("pod", "DELETE", stage.path("pods", pod), { seen });
      const service = stage.name("service");
      await stage.create("services", {
        metadata: { name: service },
        spec: { clusterIP: "None", selector: { a: "b" } },
      });
      await stage.call("service", "DELETE", stage.path("services", service), { seen });
    },
  },
  {
    id: "deletion/second",
    title: "a second DELETE of what is gone is 404",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      assert.equal((await remove(stage, "first", "secrets", name)).code, 200);
      assert.equal((await remove(stage, "second", "secrets", name)).code, 404);
    },
  },
  {
    id: "deletion/finalizer",
    title: "with a finalizer a DELETE marks the object, answers with it, and it goes with the last finalizer",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep, { finalizers: held }));
      const seen = (body: Json): Json => at(body, "metadata") ?? null; // the controller writes the status meanwhile
      const marked = await stage.call("mark", "DELETE", stage.path("sandboxes", name), { seen });
      assert.equal(marked.code, 200);
      assert.ok(isTerminating(marked.body));
      const again = await stage.call("again", "DELETE", stage.path("sandboxes", name), { seen });
      assert.equal(again.code, 200);
      assert.equal(at(again.body, "metadata", "deletionTimestamp"), at(marked.body, "metadata", "deletionTimestamp"));
      await stage.merge("sandboxes", name, { metadata: { finalizers: null } });
      assert.equal(await stage.get("sandboxes", name), undefined);
    },
  },
  {
    id: "deletion/marked-generation",
    title: "a mark of deletion moves the generation of a custom resource",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep, { finalizers: held }));
      const body = await stage.do("DELETE", stage.path("sandboxes", name));
      stage.note("mark", at(body, "metadata") ?? null);
      assert.equal(at(body, "metadata", "generation"), 2);
      assert.equal(at(body, "metadata", "deletionGracePeriodSeconds"), 0);
    },
  },
  {
    id: "deletion/terminating-create",
    title: "while an object is terminating its name is taken: a POST is 409 and says that it is being deleted",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      const body = sandboxObject(name, asleep, { finalizers: held });
      await stage.create("sandboxes", body);
      await stage.do("DELETE", stage.path("sandboxes", name));
      const { code } = await stage.call("create", "POST", stage.path("sandboxes"), { body });
      assert.equal(code, 409);
    },
  },
  {
    id: "deletion/terminating-writes",
    title: "a terminating object takes spec writes but no new finalizers, and its mark cannot be taken off",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep, { finalizers: held }));
      await stage.do("DELETE", stage.path("sandboxes", name));
      const changed = await stage.merge("sandboxes", name, { spec: { service: true } });
      assert.ok(isTerminating(changed));
      const { code } = await stage.call("add finalizer", "PATCH", stage.path("sandboxes", name), {
        body: { metadata: { finalizers: [...held, "conformance.test/more"] } },
        type: "application/merge-patch+json",
      });
      assert.equal(code, 422);
      const unmarked = await stage.merge("sandboxes", name, { metadata: { deletionTimestamp: null } });
      assert.ok(isTerminating(unmarked));
    },
  },
  {
    id: "deletion/background",
    title: "background: the owner goes at once and its dependents after it",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage);
      const { code } = await remove(stage, "delete", "secrets", parent, { propagationPolicy: "Background" });
      assert.equal(code, 200);
      assert.equal(await stage.get("secrets", parent), undefined);
      await stage.untilGone("secrets", child);
    },
  },
  {
    id: "deletion/default-policy",
    title: "without a policy dependents of Secrets and Sandboxes go too",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage);
      await remove(stage, "delete", "secrets", parent);
      await stage.untilGone("secrets", child);
      const sandbox = stage.name("sandbox");
      const owner = await stage.create("sandboxes", sandboxObject(sandbox, asleep));
      const owned = stage.name("owned");
      await stage.create("secrets", secretObject(owned, { ownerReferences: [ownerOf(owner)] }));
      await remove(stage, "sandbox", "sandboxes", sandbox);
      await stage.untilGone("secrets", owned);
    },
  },
  {
    id: "deletion/foreground",
    title: "foreground: the owner is marked with the foregroundDeletion finalizer and goes after its dependents",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage, { child: { finalizers: held } });
      const { code, body } = await remove(stage, "delete", "secrets", parent, { propagationPolicy: "Foreground" });
      assert.equal(code, 200);
      assert.deepEqual(at(body, "metadata", "finalizers"), ["foregroundDeletion"]);
      await stage.until("secrets", child, isTerminating, "be terminating");
      assert.ok(isTerminating(await stage.get("secrets", parent)));
      await stage.merge("secrets", child, { metadata: { finalizers: null } });
      await stage.untilGone("secrets", parent);
    },
  },
  {
    id: "deletion/foreground-non-blocking",
    title: "foreground: a dependent that does not block is not waited for",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage, {
        child: { finalizers: held },
        owner: { blockOwnerDeletion: false },
      });
      await remove(stage, "delete", "secrets", parent, { propagationPolicy: "Foreground" });
      await stage.untilGone("secrets", parent);
      await stage.until("secrets", child, isTerminating, "be terminating");
    },
  },
  {
    id: "deletion/foreground-alone",
    title: "foreground: an owner without dependents is marked first and then goes",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const name = stage.name("sandbox");
      const made = await stage.create("sandboxes", sandboxObject(name, asleep));
      const uid = textAt(made, "metadata", "uid");
      const body = { propagationPolicy: "Foreground", preconditions: { uid } };
      const answer = await stage.call("delete", "DELETE", stage.path("sandboxes", name), {
        body,
        seen: (object) => at(object, "metadata", "finalizers") ?? object,
      });
      assert.ok(isTerminating(answer.body));
      await stage.untilGone("sandboxes", name);
    },
  },
  {
    id: "deletion/orphan",
    title: "orphan: the owner goes, its dependents stay without their reference",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage);
      const { body } = await remove(stage, "delete", "secrets", parent, { propagationPolicy: "Orphan" });
      assert.deepEqual(at(body, "metadata", "finalizers"), ["orphan"]);
      await stage.untilGone("secrets", parent);
      const left = await stage.get("secrets", child);
      assert.ok(left !== undefined);
      assert.deepEqual(listAt(left, "metadata", "ownerReferences"), []);
    },
  },
  {
    id: "deletion/query-options",
    title: "policy and grace may stand in the query",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage);
      const query = { propagationPolicy: "Orphan" };
      const { code } = await stage.call("orphan", "DELETE", stage.path("secrets", parent), { query });
      assert.equal(code, 200);
      await stage.untilGone("secrets", parent);
      assert.ok((await stage.get("secrets", child)) !== undefined);
      const pod = stage.name("pod");
      await stage.create("pods", podObject(pod));
      await stage.raw("DELETE", stage.path("pods", pod), { query: { gracePeriodSeconds: "0" } });
      assert.equal(await stage.get("pods", pod), undefined);
    },
  },
  {
    id: "deletion/bad-options",
    title: "options that cannot be read are refused and nothing is deleted",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const path = stage.path("secrets", name);
      assert.equal((await remove(stage, "policy", "secrets", name, { propagationPolicy: "Perhaps" })).code, 422);
      await remove(stage, "policy and orphan", "secrets", name, {
        propagationPolicy: "Foreground",
        orphanDependents: true,
      });
      await stage.call("grace in query", "DELETE", path, { query: { gracePeriodSeconds: "soon" } });
      await stage.call("unreadable", "DELETE", path, { body: "{" });
      await stage.call("grace text", "DELETE", path, { body: { gracePeriodSeconds: "soon" } });
      await stage.call("list", "DELETE", path, { body: "[]" });
      assert.ok((await stage.get("secrets", name)) !== undefined);
    },
  },
  {
    id: "deletion/owner-wrong-uid",
    title: "a dependent whose owner exists under another uid is collected",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const [parent, child] = [stage.name("parent"), stage.name("child")];
      const owner = await stage.create("secrets", secretObject(parent));
      const wrong = ownerOf(owner, { uid: "11111111-1111-4111-8111-111111111111" });
      await stage.create("secrets", secretObject(child, { ownerReferences: [wrong] }));
      await stage.untilGone("secrets", child);
      assert.ok((await stage.get("secrets", parent)) !== undefined);
    },
  },
  {
    id: "deletion/owner-absent",
    title: "a dependent of an owner that is not there is collected",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage);
      const owner = {
        apiVersion: "agents.x-k8s.io/v1beta1",
        kind: "Sandbox",
        name: "none",
        uid: "11111111-1111-4111-8111-111111111112",
      };
      const lost = stage.name("lost");
      await stage.create("persistentvolumeclaims", claimObject(lost, {}, { ownerReferences: [owner] }));
      await stage.untilGone("persistentvolumeclaims", lost);
      assert.ok((await stage.get("secrets", parent)) !== undefined);
      assert.ok((await stage.get("secrets", child)) !== undefined);
    },
  },
  {
    id: "deletion/two-owners",
    title: "a dependent with another owner left stays, without the reference of the one that went",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const [first, second, child] = [stage.name("first"), stage.name("second"), stage.name("child")];
      const owners = [
        await stage.create("secrets", secretObject(first)),
        await stage.create("secrets", secretObject(second)),
      ];
      const ownerReferences = owners.map((owner) => ownerOf(owner));
      await stage.create("secrets", secretObject(child, { ownerReferences }));
      await stage.do("DELETE", stage.path("secrets", first), { body: { propagationPolicy: "Background" } });
      await stage.until(
        "secrets",
        child,
        (object) => listAt(object, "metadata", "ownerReferences").length === 1,
        "lose one owner",
      );
      await stage.do("DELETE", stage.path("secrets", second), { body: { propagationPolicy: "Background" } });
      await stage.untilGone("secrets", child);
    },
  },
  {
    id: "deletion/grandchildren",
    title: "dependents of dependents go too",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage);
      const owner = await stage.get("secrets", child);
      const grandchild = stage.name("grandchild");
      await stage.create("secrets", secretObject(grandchild, { ownerReferences: [ownerOf(owner ?? null)] }));
      await remove(stage, "delete", "secrets", parent, { propagationPolicy: "Background" });
      await stage.untilGone("secrets", grandchild);
    },
  },
  {
    id: "deletion/pod-unbound",
    title: "a pod without a node goes at once, whatever its grace",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", unboundPodObject(name));
      await stage.do("DELETE", stage.path("pods", name));
      assert.equal(await stage.get("pods", name), undefined);
    },
  },
  {
    id: "deletion/pod-bound",
    title: "a pod on a node is marked with its own grace and stays until the kubelet lets it go",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", podObject(name));
      const marked = await stage.do("DELETE", stage.path("pods", name));
      stage.note("marked", {
        grace: at(marked, "metadata", "deletionGracePeriodSeconds") ?? null,
        terminating: isTerminating(marked),
        finalizers: at(marked, "metadata", "finalizers") ?? null,
        generation: at(marked, "metadata", "generation") ?? null,
      });
      assert.equal(at(marked, "metadata", "deletionGracePeriodSeconds"), 25);
      const asked = Date.parse(textAt(marked, "metadata", "deletionTimestamp")) - 25_000;
      assert.ok(Math.abs(asked - Date.parse(textAt(marked, "metadata", "creationTimestamp"))) < 20_000);
      await stage.do("DELETE", stage.path("pods", name), { body: { gracePeriodSeconds: 0 } });
      assert.equal(await stage.get("pods", name), undefined);
    },
  },
  {
    id: "deletion/pod-grace",
    title: "gracePeriodSeconds overrides the pod's own; a second DELETE may shorten it and not lengthen it",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", podObject(name));
      const grace = async (step: string, gracePeriodSeconds?: number) => {
        const answer = await stage.raw("DELETE", stage.path("pods", name), {
          body: gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds },
        });
        const seconds = at(answer.body, "metadata", "deletionGracePeriodSeconds") ?? null;
        stage.note(step, { code: answer.code, seconds });
        return seconds;
      };
      assert.equal(await grace("60", 60), 60);
      assert.equal(await grace("none given", undefined), 60);
      assert.equal(await grace("longer", 90), 60);
      assert.equal(await grace("shorter", 5), 5);
      await grace("negative", -1);
    },
  },
  {
    id: "deletion/pod-finished",
    title: "a pod that has ended goes at once, though it is on a node",
    source,
    run: async (stage) => {
      for (const phase of ["Succeeded", "Failed"]) {
        const name = stage.name(phase.toLowerCase());
        await stage.create("pods", podObject(name));
        await stage.merge("pods", name, { status: { phase } }, "status");
        await stage.do("DELETE", stage.path("pods", name));
        assert.equal(await stage.get("pods", name), undefined);
      }
    },
  },
  {
    id: "deletion/pod-finalizer-grace",
    title: "a pod with a finalizer outlives its kubelet's last word",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", podObject(name, {}, { finalizers: held }));
      await stage.do("DELETE", stage.path("pods", name));
      await stage.do("DELETE", stage.path("pods", name), { body: { gracePeriodSeconds: 0 } });
      assert.equal(at(await stage.get("pods", name), "metadata", "deletionGracePeriodSeconds"), 0);
      await stage.merge("pods", name, { metadata: { finalizers: null } });
      await stage.untilGone("pods", name);
    },
  },
  {
    id: "deletion/collection",
    title: "deletecollection deletes what is selected and answers with a list or a Status",
    source,
    run: async (stage) => {
      const label = stage.name("group");
      for (const item of ["a", "b"])
        await stage.create("secrets", secretObject(stage.name(item), { labels: { group: label } }));
      const other = stage.name("other");
      await stage.create("secrets", secretObject(other));
      const query = { labelSelector: `group=${label}` };
      const { code } = await stage.call("delete", "DELETE", stage.path("secrets"), { query });
      assert.equal(code, 200);
      const list = await stage.do("GET", stage.path("secrets"), { query });
      assert.deepEqual(listAt(list, "items"), []);
      assert.ok((await stage.get("secrets", other)) !== undefined);
      const everywhereAnswer = await stage.call("everywhere", "DELETE", everywhere("secrets"), { query });
      assert.equal(everywhereAnswer.code, 405);
    },
  },
  {
    id: "deletion/claim-in-use",
    title: "a claim that a pod uses is marked and stays until the pod is gone",
    source,
    needs: ["claim-protection"],
    run: async (stage) => {
      const [claim, pod] = [stage.name("claim"), stage.name("pod")];
      const made = await stage.create("persistentvolumeclaims", claimObject(claim));
      assert.deepEqual(at(made, "metadata", "finalizers"), ["kubernetes.io/pvc-protection"]);
      const volumes = [{ name: "disk", persistentVolumeClaim: { claimName: claim } }];
      await stage.create("pods", podObject(pod, { volumes }));
      const marked = await stage.do("DELETE", stage.path("persistentvolumeclaims", claim));
      assert.ok(isTerminating(marked));
      await stage.do("DELETE", stage.path("pods", pod));
      assert.ok((await stage.get("persistentvolumeclaims", claim)) !== undefined);
      await stage.do("DELETE", stage.path("pods", pod), { body: { gracePeriodSeconds: 0 } });
      await stage.untilGone("persistentvolumeclaims", claim);
    },
  },
  {
    id: "deletion/claim-finished-pod",
    title: "a claim that an ended pod names stays with that pod; one that only an unplaced pod names goes",
    source,
    needs: ["claim-protection"],
    run: async (stage) => {
      const uses = (claimName: string) => ({ volumes: [{ name: "disk", persistentVolumeClaim: { claimName } }] });
      const [kept, pod] = [stage.name("kept"), stage.name("pod")];
      await stage.create("persistentvolumeclaims", claimObject(kept));
      await stage.create("pods", podObject(pod, uses(kept)));
      await stage.merge("pods", pod, { status: { phase: "Failed" } }, "status");
      const [free, waiting] = [stage.name("free"), stage.name("waiting")];
      await stage.create("persistentvolumeclaims", claimObject(free));
      await stage.create("pods", unboundPodObject(waiting, uses(free)));
      await stage.do("DELETE", stage.path("persistentvolumeclaims", kept));
      await stage.do("DELETE", stage.path("persistentvolumeclaims", free));
      await stage.untilGone("persistentvolumeclaims", free);
      assert.ok((await stage.get("persistentvolumeclaims", kept)) !== undefined);
      await stage.do("DELETE", stage.path("pods", pod));
      await stage.untilGone("persistentvolumeclaims", kept);
    },
  },
  {
    id: "deletion/namespace",
    title: "a deleted namespace is Terminating, takes nothing new, and goes with its content",
    source,
    needs: ["namespaces"],
    run: async (stage) => {
      const name = stage.name("space");
      await stage.create("namespaces", { metadata: { name } });
      const secrets = stage.path("secrets").replace(stage.namespace, name);
      await stage.do("POST", secrets, { body: secretObject("held", { finalizers: held }) });
      await stage.do("DELETE", stage.path("namespaces", name));
      const terminating = await stage.get("namespaces", name);
      assert.equal(at(terminating, "status", "phase"), "Terminating");
      const { code } = await stage.call("create", "POST", secrets, { body: secretObject("late") });
      assert.equal(code, 403);
      await stage.do("PATCH", `${secrets}/held`, {
        body: { metadata: { finalizers: null } },
        type: "application/merge-patch+json",
      });
      await stage.untilGone("namespaces", name);
    },
  },
  {
    id: "deletion/recreated-owner",
    title: "an object made again under the same name has another uid and inherits no dependents",
    source,
    needs: ["gc"],
    run: async (stage) => {
      const { parent, child } = await family(stage);
      const before = await stage.get("secrets", parent);
      await stage.do("DELETE", stage.path("secrets", parent), { body: { propagationPolicy: "Background" } });
      const again = await stage.create("secrets", secretObject(parent));
      assert.notEqual(textAt(again, "metadata", "uid"), textAt(before, "metadata", "uid"));
      await stage.untilGone("secrets", child);
      assert.ok((await stage.get("secrets", parent)) !== undefined);
    },
  },
];
