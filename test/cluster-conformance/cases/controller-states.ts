import assert from "node:assert/strict";
import { type ConformanceCase, fromController } from "../suite/conformance-case.ts";
import { at, type Json, textAt } from "../suite/json.ts";
import { nobodysNode } from "../suite/objects.ts";
import { conditionIn, isTerminating, playSandbox, podNameAnnotation } from "../suite/sandbox-play.ts";

const needs = ["controller"] as const;
const uidOf = (object: Json | undefined): string => textAt(object, "metadata", "uid");
const past = "2020-01-01T00:00:00Z";

/** What the Sandbox controller says and does in each state of pod and mode; the case is the kubelet. */
export const controllerStates: readonly ConformanceCase[] = [
  {
    id: "controller-states/pending",
    title: "a new Sandbox: its pod is Pending, so Ready=False, Suspended=False, PodScheduled=Unknown",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { service: true } });
      await play.create();
      await play.untilReason(
        "Ready",
        "DependenciesNotReady",
        (sandbox) => at(sandbox, "status", "service") !== undefined,
      );
      await play.noteStatus("status");
    },
  },
  {
    id: "controller-states/ready",
    title: "Ready=True needs phase Running, the pod's Ready and an address",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.create();
      await play.untilPod(() => true, "exist");
      const ready = (message: string) =>
        stage.until(
          "sandboxes",
          play.name,
          (sandbox) => `${at(conditionIn(sandbox, "Ready"), "message")}` === message,
          `say "${message}"`,
        );
      await play.kubelet.runUnready();
      await ready("Pod is Running but not Ready");
      await play.noteStatus("not ready");
      await play.kubelet.report({ podIP: null, podIPs: null, conditions: [{ type: "Ready", status: "True" }] });
      await ready("Pod is Ready but has no podIPs yet");
      await play.noteStatus("no address");
      await play.kubelet.run();
      await play.untilReason("Ready", "DependenciesReady");
      await play.noteStatus("ready");
    },
  },
  {
    id: "controller-states/ready-with-service",
    title: "with a Service, Ready tells of it, and the status names it",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { service: true } });
      await play.open();
      await play.noteStatus("status");
    },
  },
  {
    id: "controller-states/scheduled",
    title: "PodScheduled copies the pod's condition",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.create();
      await play.untilPod(() => true, "exist");
      const say = async (step: string, condition: object, reason: string) => {
        const lastTransitionTime = "2026-01-01T00:00:00Z";
        await play.kubelet.report({ conditions: [{ type: "PodScheduled", lastTransitionTime, ...condition }] });
        const sandbox = await play.untilReason("PodScheduled", reason);
        stage.note(step, conditionIn(sandbox, "PodScheduled") ?? null);
      };
      await say("no room", { status: "False", reason: "Unschedulable", message: "0/1 nodes" }, "Unschedulable");
      await say("no reason", { status: "False" }, "PodSchedulingUnknown");
      await say("scheduled", { status: "True" }, "PodScheduled");
    },
  },
  {
    id: "controller-states/node-name-late",
    title: "the node's name alone is not written before the pod is ready",
    source: fromController("3.1"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { podSpec: { nodeName: undefined, schedulerName: "conformance-nobody" } });
      await play.create();
      await play.untilPod(() => true, "exist");
      const lastTransitionTime = "2026-01-01T00:00:00Z";
      await play.kubelet.report({ conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime }] });
      await play.untilReason("PodScheduled", "PodScheduled");
      const target = { apiVersion: "v1", kind: "Node", name: nobodysNode };
      const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: play.name }, target };
      await stage.do("POST", stage.path("pods", play.name, "binding"), { body: binding });
      // Another Sandbox's whole way is proof that the controller had its time.
      const other = playSandbox(stage, { label: "other" });
      await other.open();
      assert.equal(at(await play.sandbox(), "status", "nodeName"), undefined);
      await play.kubelet.run();
      const ready = await play.untilReason("Ready", "DependenciesReady");
      assert.equal(at(ready, "status", "nodeName"), nobodysNode);
    },
  },
  {
    id: "controller-states/not-ready-again",
    title: "a pod that stops being ready takes Ready away, and gives it back",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      await play.kubelet.runUnready();
      await play.untilReason("Ready", "DependenciesNotReady");
      await play.noteStatus("not ready");
      await play.kubelet.run();
      await play.untilReason("Ready", "DependenciesReady");
    },
  },
  {
    id: "controller-states/suspend",
    title: "suspend: the pod is deleted with its own grace; Suspended is False until it is gone, then True",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true, spec: { service: true } });
      await play.open();
      await play.setMode("Suspended");
      const pod = await play.untilPod(isTerminating, "be terminating");
      assert.equal(at(pod, "metadata", "deletionGracePeriodSeconds"), 25);
      await play.untilReason("Suspended", "PodTerminating");
      await play.noteStatus("terminating");
      await play.kubelet.finish();
      const sandbox = await play.untilReason(
        "Suspended",
        "PodTerminated",
        (object) => at(object, "metadata", "annotations", podNameAnnotation) === undefined,
      );
      await play.noteStatus("suspended");
      stage.note("annotations", at(sandbox, "metadata", "annotations") ?? null);
      assert.ok((await stage.get("persistentvolumeclaims", play.claimName)) !== undefined);
      assert.ok((await stage.get("services", play.name)) !== undefined);
    },
  },
  {
    id: "controller-states/suspend-keeps-claim",
    title: "the claim outlives suspend and resume with its uid",
    source: fromController("3.3"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true });
      await play.open();
      const before = uidOf(await stage.get("persistentvolumeclaims", play.claimName));
      const firstPod = uidOf(await play.pod());
      await play.setMode("Suspended");
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      await play.untilReason("Suspended", "PodTerminated");
      await play.setMode("Running");
      const pod = await play.untilPod(() => true, "exist");
      assert.notEqual(uidOf(pod), firstPod);
      assert.equal(uidOf(await stage.get("persistentvolumeclaims", play.claimName)), before);
      await play.untilReason("Suspended", "NotSuspended");
      await play.untilReason("Ready", "DependenciesNotReady");
      await play.noteStatus("resuming");
      await play.kubelet.run();
      await play.untilReason("Ready", "DependenciesReady");
      await play.noteStatus("resumed");
    },
  },
  {
    id: "controller-states/created-suspended",
    title: "a Sandbox made Suspended has its claim and Service and never a pod",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true, spec: { service: true, operatingMode: "Suspended" } });
      await play.create();
      await play.untilReason("Suspended", "PodTerminated");
      await play.noteStatus("status");
      assert.equal(await play.pod(), undefined);
      assert.ok((await stage.get("persistentvolumeclaims", play.claimName)) !== undefined);
    },
  },
  {
    id: "controller-states/addresses-while-terminating",
    title: "the pod's addresses stay in the status while it is terminating, and go with it",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      await play.setMode("Suspended");
      const terminating = await play.untilReason("Suspended", "PodTerminating");
      assert.deepEqual(at(terminating, "status", "podIPs"), ["10.9.8.7"]);
      await play.kubelet.finish();
      const gone = await play.untilReason("Suspended", "PodTerminated");
      assert.equal(at(gone, "status", "podIPs"), undefined);
    },
  },
  {
    id: "controller-states/resume-while-terminating",
    title:
      "resumed while the old pod is dying: Ready=True with the new generation and the old address; a new pod only when it is gone",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      const old = uidOf(await play.pod());
      await play.setMode("Suspended");
      await play.untilReason("Suspended", "PodTerminating");
      await play.setMode("Running");
      const lying = await play.untilReason("Ready", "DependenciesReady");
      assert.equal(at(conditionIn(lying, "Suspended"), "reason"), "NotSuspended");
      await play.noteStatus("while the old pod is dying");
      const dying = await play.pod();
      assert.equal(uidOf(dying), old);
      assert.ok(isTerminating(dying));
      await play.kubelet.finish();
      const pod = await play.untilPod((object) => uidOf(object) !== old, "be another");
      assert.ok(!isTerminating(pod));
    },
  },
  {
    id: "controller-states/flipped-twice",
    title:
      "Suspended and Running again in quick succession: in the end it runs, with the old pod or one that follows it",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      const old = uidOf(await play.pod());
      await play.setMode("Suspended");
      await play.setMode("Running");
      await play.untilReason("Suspended", "NotSuspended");
      const pod = await play.pod();
      if (pod !== undefined && uidOf(pod) === old && isTerminating(pod)) await play.kubelet.finish();
      const now = await play.untilPod((object) => !isTerminating(object), "be alive");
      if (uidOf(now) !== old) await play.kubelet.run();
      await play.untilReason("Ready", "DependenciesReady");
    },
  },
  {
    id: "controller-states/transition-time",
    title: "lastTransitionTime moves with the status of a condition, not with its reason",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      const open = await play.open();
      const timeOf = (sandbox: Json) => at(conditionIn(sandbox, "Suspended"), "lastTransitionTime");
      await stage.eventually("a second has passed", async () => Date.now() - Date.parse(`${timeOf(open)}`) > 2_100);
      await play.setMode("Suspended");
      const terminating = await play.untilReason("Suspended", "PodTerminating");
      assert.equal(timeOf(terminating), timeOf(open));
      await play.kubelet.finish();
      const gone = await play.untilReason("Suspended", "PodTerminated");
      assert.notEqual(timeOf(gone), timeOf(open));
    },
  },
  {
    id: "controller-states/pod-deleted",
    title: "a pod that someone deletes is replaced when it is gone; Suspended stays False",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      const old = uidOf(await play.pod());
      await stage.do("DELETE", stage.path("pods", play.name));
      assert.equal(uidOf(await play.pod()), old);
      await play.kubelet.finish();
      await play.untilPod((pod) => uidOf(pod) !== old, "be another");
      const sandbox = await play.untilReason("Ready", "DependenciesNotReady");
      assert.equal(at(conditionIn(sandbox, "Suspended"), "reason"), "NotSuspended");
    },
  },
  {
    id: "controller-states/pod-failed",
    title: "a failed pod is not replaced: Finished=True/PodFailed; suspend and resume bring a new one",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      const old = uidOf(await play.pod());
      await play.kubelet.end("Failed", { reason: "Evicted", message: "the node was low on memory" });
      await play.untilReason("Finished", "PodFailed");
      await play.untilReason("Ready", "PodFailed");
      await play.noteStatus("failed");
      await play.patch({ metadata: { annotations: { touched: "1" } } });
      const other = playSandbox(stage, { label: "other" });
      await other.open();
      assert.equal(uidOf(await play.pod()), old);
      await play.setMode("Suspended");
      await stage.untilGone("pods", play.name);
      await play.untilReason("Suspended", "PodTerminated");
      await play.noteStatus("suspended");
      await play.setMode("Running");
      await play.untilPod((pod) => uidOf(pod) !== old, "be another");
      const back = await play.untilReason("Ready", "DependenciesNotReady");
      assert.equal(conditionIn(back, "Finished"), undefined);
    },
  },
  {
    id: "controller-states/pod-succeeded",
    title: "a pod that ended well is not replaced either: Finished=True/PodSucceeded",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      await play.kubelet.end("Succeeded");
      await play.untilReason("Finished", "PodSucceeded");
      await play.untilReason("Ready", "PodSucceeded");
      await play.noteStatus("succeeded");
    },
  },
  {
    id: "controller-states/dying-pod-failed",
    title: "a dying pod that the kubelet marks Failed shows as Finished/PodFailed, until it is gone",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      await play.setMode("Suspended");
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.end("Failed");
      await play.untilReason("Finished", "PodFailed");
      await play.noteStatus("failed while dying");
      await play.kubelet.finish();
      const gone = await play.untilReason("Suspended", "PodTerminated");
      assert.equal(conditionIn(gone, "Finished"), undefined);
    },
  },
  {
    id: "controller-states/stuck-terminating",
    title: "a pod that stays terminating keeps the Sandbox in PodTerminating: no second delete, no force",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      await play.setMode("Suspended");
      await play.untilReason("Suspended", "PodTerminating");
      const before = await play.pod();
      await play.patch({ metadata: { annotations: { touched: "1" } } });
      const other = playSandbox(stage, { label: "other" });
      await other.open();
      const after = await play.pod();
      assert.equal(textAt(after, "metadata", "resourceVersion"), textAt(before, "metadata", "resourceVersion"));
      const sandbox = await play.sandbox();
      assert.equal(at(conditionIn(sandbox, "Suspended"), "reason"), "PodTerminating");
    },
  },
  {
    id: "controller-states/observed-generation",
    title: "every condition carries the generation that it was judged by",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      await play.patch({ spec: { shutdownPolicy: "Delete" } });
      const sandbox = await play.untilReason("Ready", "DependenciesReady");
      assert.equal(at(sandbox, "metadata", "generation"), 2);
      await play.noteStatus("status");
    },
  },
  {
    id: "controller-states/expired-at-birth",
    title: "a shutdownTime in the past never makes a pod; Retain keeps the object",
    source: fromController("3.7"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true, spec: { service: true, shutdownTime: past } });
      await play.create();
      await play.untilReason("Ready", "SandboxExpired");
      await play.noteStatus("status");
      assert.equal(await play.pod(), undefined);
      assert.equal(await stage.get("services", play.name), undefined);
    },
  },
  {
    id: "controller-states/expires-retain",
    title: "expiry with Retain deletes pod and Service, keeps the claim, clears the status but its conditions",
    source: fromController("3.7"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true, spec: { service: true } });
      await play.open();
      const claim = uidOf(await stage.get("persistentvolumeclaims", play.claimName));
      await play.patch({ spec: { shutdownTime: past } });
      await play.untilPod(isTerminating, "be terminating");
      await stage.untilGone("services", play.name);
      await play.untilReason("Ready", "SandboxExpired", (sandbox) => at(sandbox, "status", "podIPs") === undefined);
      await play.kubelet.finish();
      await stage.untilGone("pods", play.name);
      await play.noteStatus("expired");
      assert.equal(uidOf(await stage.get("persistentvolumeclaims", play.claimName)), claim);
    },
  },
  {
    id: "controller-states/expires-delete",
    title: "expiry with Delete deletes the object, and the collector its claim",
    source: fromController("3.7"),
    needs: ["controller", "gc"],
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true });
      await play.open();
      await play.patch({ spec: { shutdownTime: past, shutdownPolicy: "Delete" } });
      await stage.untilGone("sandboxes", play.name);
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      await stage.untilGone("persistentvolumeclaims", play.claimName);
    },
  },
  {
    id: "controller-states/expires-in-time",
    title: "a shutdownTime ahead is waited for",
    source: fromController("3.7"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      const at5 = new Date(Date.now() + 3_000).toISOString().replace(/\.\d+Z$/, "Z");
      await play.patch({ spec: { shutdownTime: at5 } });
      await play.untilPod(isTerminating, "be terminating");
      assert.ok(Date.now() >= Date.parse(at5));
    },
  },
  {
    id: "controller-states/expired-comes-back",
    title: "a retained Sandbox whose shutdownTime is taken away runs again on the same claim",
    source: fromController("3.7"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true });
      await play.open();
      const claim = uidOf(await stage.get("persistentvolumeclaims", play.claimName));
      await play.patch({ spec: { shutdownTime: past } });
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      await stage.untilGone("pods", play.name);
      await play.patch({ spec: { shutdownTime: null } });
      await play.untilPod(() => true, "exist");
      await play.untilReason("Ready", "DependenciesNotReady");
      await play.noteStatus("back");
      assert.equal(uidOf(await stage.get("persistentvolumeclaims", play.claimName)), claim);
    },
  },
  {
    id: "controller-states/expired-while-suspended",
    title: "expiry runs while Suspended too",
    source: fromController("3.7"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { operatingMode: "Suspended" } });
      await play.create();
      await play.untilReason("Suspended", "PodTerminated");
      await play.patch({ spec: { shutdownTime: past } });
      await play.untilReason("Ready", "SandboxExpired");
      await play.noteStatus("status");
    },
  },
  {
    id: "controller-states/deleted-foreground",
    title: "a foreground delete takes pod, Service and claim first, and waits for the pod's last word",
    source: fromController("3.7"),
    needs: ["controller", "gc", "claim-protection"],
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true, spec: { service: true } });
      await play.open();
      const read = await play.sandbox();
      const body = { propagationPolicy: "Foreground", preconditions: { uid: uidOf(read) } };
      await stage.do("DELETE", stage.path("sandboxes", play.name), { body });
      await play.untilPod(isTerminating, "be terminating");
      assert.ok(isTerminating(await play.sandbox()));
      await play.kubelet.finish();
      await stage.untilGone("sandboxes", play.name);
      for (const [plural, name] of [
        ["pods", play.name],
        ["services", play.name],
        ["persistentvolumeclaims", play.claimName],
      ] as const) {
        assert.equal(await stage.get(plural, name), undefined);
      }
    },
  },
  {
    id: "controller-states/terminating-left-alone",
    title: "for a Sandbox that is being deleted the controller does nothing: a lost pod is not replaced",
    source: fromController("3.7"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { metadata: { finalizers: ["conformance.test/hold"] } });
      await play.open();
      await stage.do("DELETE", stage.path("sandboxes", play.name));
      const before = await play.sandbox();
      await stage.do("DELETE", stage.path("pods", play.name), { body: { gracePeriodSeconds: 0 } });
      const other = playSandbox(stage, { label: "other" });
      await other.open();
      assert.equal(await play.pod(), undefined);
      const after = await play.sandbox();
      assert.deepEqual(at(after, "status"), at(before, "status"));
      await play.patch({ metadata: { finalizers: null } });
      await stage.untilGone("sandboxes", play.name);
    },
  },
];
