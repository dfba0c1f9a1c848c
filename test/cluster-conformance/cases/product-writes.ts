import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import type { Answer } from "../suite/http-client.ts";
import { at, type Json, listAt, textAt } from "../suite/json.ts";
import { claimSpec, podTemplate } from "../suite/objects.ts";
import { conditionIn, isTerminating, playSandbox, type SandboxPlay } from "../suite/sandbox-play.ts";
import { jsonPatch, type Stage } from "../suite/stage.ts";

const needs = ["controller"] as const;
const source = `${fromKubernetes}; the writes are those of docs/design/object-contract.md`;

const writtenBy = "holdfast.dev/written-by";
const changedAt = "sandbox.namzu.ai/operating-mode-changed-at";
const epoch = "sandbox.namzu.ai/holder-epoch";
const pathOf = (annotation: string): string => `/metadata/annotations/${annotation.replaceAll("/", "~1")}`;

/** A workspace as the product creates it. */
function playWorkspace(stage: Stage): SandboxPlay {
  const labels = { "sandbox.namzu.ai/template": "default" };
  return playSandbox(stage, {
    metadata: {
      annotations: {
        "sandbox.namzu.ai/pod-template-hash": "sha256:0",
        "holdfast.dev/created-by": "creator",
        [writtenBy]: "create",
      },
    },
    spec: {
      podTemplate: podTemplate({}, { labels }),
      volumeClaimTemplates: [{ metadata: { name: "workspace" }, spec: claimSpec() }],
      operatingMode: "Running",
      service: true,
    },
  });
}

function write(stage: Stage, play: SandboxPlay, body: readonly object[]): Promise<Answer> {
  return stage.raw("PATCH", stage.path("sandboxes", play.name), { body, type: jsonPatch });
}

const test = (path: string, value: unknown) => ({ op: "test", path, value });
const add = (path: string, value: unknown) => ({ op: "add", path, value });

/** The suspend of a workspace that was read as `read`, by the caller `by`. */
function suspendOf(read: Json, by: string): object[] {
  const known = at(read, "metadata", "annotations", changedAt);
  return [
    test("/metadata/uid", textAt(read, "metadata", "uid")),
    test(pathOf(writtenBy), textAt(read, "metadata", "annotations", writtenBy)),
    known === undefined
      ? test("/metadata/resourceVersion", textAt(read, "metadata", "resourceVersion"))
      : test(pathOf(changedAt), known),
    add(pathOf(writtenBy), by),
    add(pathOf(changedAt), new Date().toISOString()),
    add("/spec/operatingMode", "Suspended"),
  ];
}

function wakeOf(read: Json, by: string): object[] {
  return [
    test("/metadata/uid", textAt(read, "metadata", "uid")),
    test(pathOf(writtenBy), textAt(read, "metadata", "annotations", writtenBy)),
    test(pathOf(changedAt), textAt(read, "metadata", "annotations", changedAt)),
    test("/spec/operatingMode", "Suspended"),
    add(pathOf(writtenBy), by),
    add(pathOf(changedAt), new Date().toISOString()),
    add("/spec/operatingMode", "Running"),
  ];
}

/** Writes from a fresh read until the write lands; the controller's own writes move the version in between. */
async function suspend(stage: Stage, play: SandboxPlay, by: string): Promise<void> {
  await stage.eventually("a suspend lands", async () => {
    const read = await play.sandbox();
    return (await write(stage, play, suspendOf(read ?? null, by))).code === 200;
  });
}

/** The product's own writes, in their order, against the cluster's rules and beside the controller's writes. */
export const productWrites: readonly ConformanceCase[] = [
  {
    id: "product-writes/life",
    title: "create, suspend, wake and delete as the product writes them",
    source,
    needs: ["controller", "gc", "claim-protection"],
    run: async (stage) => {
      const play = playWorkspace(stage);
      await play.open();
      const first = textAt(await play.pod(), "metadata", "uid");
      await suspend(stage, play, "suspend");
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      await play.untilReason("Suspended", "PodTerminated");
      const woken = await write(stage, play, wakeOf((await play.sandbox()) ?? null, "wake"));
      assert.equal(woken.code, 200);
      const pod = await play.untilPod((object) => textAt(object, "metadata", "uid") !== first, "be another");
      assert.equal(at(pod, "metadata", "labels", "sandbox.namzu.ai/template"), "default");
      await play.kubelet.run();
      await play.untilReason("Ready", "DependenciesReady");
      await stage.eventually("the delete lands; a write of the controller in between makes it 409", async () => {
        const read = await play.sandbox();
        const [uid, resourceVersion] = [textAt(read, "metadata", "uid"), textAt(read, "metadata", "resourceVersion")];
        const body = { propagationPolicy: "Foreground", preconditions: { uid, resourceVersion } };
        const { code } = await stage.raw("DELETE", stage.path("sandboxes", play.name), { body });
        assert.ok(code === 200 || code === 409, `${code}`);
        return code === 200;
      });
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      await stage.untilGone("sandboxes", play.name);
      await stage.untilGone("persistentvolumeclaims", `workspace-${play.name}`);
    },
  },
  {
    id: "product-writes/controller-writes-refuse",
    title: "a write of the controller between read and suspend makes a tested resourceVersion 422, without causes",
    source,
    needs,
    run: async (stage) => {
      const play = playWorkspace(stage);
      await play.open();
      const read = (await play.sandbox()) ?? null;
      await play.kubelet.runUnready();
      await play.untilReason("Ready", "DependenciesNotReady");
      const body = suspendOf(read, "suspend");
      const { code, body: answer } = await stage.call("suspend", "PATCH", stage.path("sandboxes", play.name), {
        body,
        type: jsonPatch,
      });
      assert.equal(code, 422);
      assert.deepEqual(listAt(answer, "details", "causes"), []);
      assert.equal(at(await play.sandbox(), "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "product-writes/stamps-survive-controller",
    title: "the controller's writes leave every annotation of the product as it is",
    source,
    needs,
    run: async (stage) => {
      const play = playWorkspace(stage);
      const made = await play.create();
      const before = at(made, "metadata", "annotations");
      await play.untilPod(() => true, "exist");
      await play.kubelet.run();
      await play.untilReason("Ready", "DependenciesReady");
      await suspend(stage, play, "suspend");
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      const sandbox = await play.untilReason("Suspended", "PodTerminated");
      const after = at(sandbox, "metadata", "annotations");
      for (const key of ["sandbox.namzu.ai/pod-template-hash", "holdfast.dev/created-by"]) {
        assert.equal(at(after, key), at(before, key));
      }
      assert.equal(at(after, writtenBy), "suspend");
    },
  },
  {
    id: "product-writes/one-winner",
    title: "of many writers that read the same, one lands; the others are 422 or 409 and change nothing",
    source,
    needs,
    run: async (stage) => {
      const play = playWorkspace(stage);
      await play.open();
      const read = (await play.sandbox()) ?? null;
      const writers = Array.from({ length: 12 }, (_, index) => `writer-${index}`);
      // Without the version: a late write of the controller is no write of the product.
      const answers = await Promise.all(
        writers.map((by) =>
          write(stage, play, [
            test("/metadata/uid", textAt(read, "metadata", "uid")),
            test(pathOf(writtenBy), textAt(read, "metadata", "annotations", writtenBy)),
            add(pathOf(writtenBy), by),
            add("/spec/operatingMode", "Suspended"),
          ]),
        ),
      );
      const winners = writers.filter((_, index) => answers[index]?.code === 200);
      assert.equal(winners.length, 1);
      assert.ok(answers.every(({ code }) => code === 200 || code === 422 || code === 409));
      assert.equal(at(await play.sandbox(), "metadata", "annotations", writtenBy), winners[0]);
    },
  },
  {
    id: "product-writes/epoch-guard",
    title: "a superseded holder's epoch is refused, whatever else it read",
    source,
    needs,
    run: async (stage) => {
      const play = playWorkspace(stage);
      await play.create();
      const adopt = [add(pathOf(epoch), "5"), add(pathOf(writtenBy), "holder-5")];
      assert.equal((await write(stage, play, adopt)).code, 200);
      const late = [test(pathOf(epoch), "4"), add(pathOf(epoch), "4"), add("/spec/operatingMode", "Suspended")];
      const { code } = await stage.call("late", "PATCH", stage.path("sandboxes", play.name), {
        body: late,
        type: jsonPatch,
      });
      assert.equal(code, 422);
      const now = await play.sandbox();
      assert.equal(at(now, "metadata", "annotations", epoch), "5");
      assert.equal(at(now, "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "product-writes/other-object",
    title: "a patch or delete meant for an object that was replaced under its name is refused",
    source,
    needs: ["controller", "gc"],
    run: async (stage) => {
      const play = playWorkspace(stage);
      const old = await play.create();
      await stage.do("DELETE", stage.path("sandboxes", play.name), { body: { propagationPolicy: "Background" } });
      await stage.raw("DELETE", stage.path("pods", play.name), { body: { gracePeriodSeconds: 0 } });
      await stage.untilGone("sandboxes", play.name);
      await play.create();
      const patched = await stage.call("patch", "PATCH", stage.path("sandboxes", play.name), {
        body: [test("/metadata/uid", textAt(old, "metadata", "uid")), add("/spec/operatingMode", "Suspended")],
        type: jsonPatch,
      });
      assert.equal(patched.code, 422);
      const { code } = await stage.call("delete", "DELETE", stage.path("sandboxes", play.name), {
        body: { propagationPolicy: "Foreground", preconditions: { uid: textAt(old, "metadata", "uid") } },
      });
      assert.equal(code, 409);
      const now = await play.sandbox();
      assert.ok(now !== undefined && !isTerminating(now));
      assert.equal(at(now, "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "product-writes/refresh",
    title:
      "a refresh replaces the pod template and wakes in one patch; the claims stay, and the next pod is of the new template",
    source,
    needs,
    run: async (stage) => {
      const play = playWorkspace(stage);
      await play.open();
      await suspend(stage, play, "suspend");
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      const suspended = await play.untilReason("Suspended", "PodTerminated");
      const claims = at(suspended, "spec", "volumeClaimTemplates");
      const template = podTemplate({ containers: [{ name: "agent", image: "example.invalid/agent:2" }] });
      const woken = await write(stage, play, [...wakeOf(suspended, "refresh"), add("/spec/podTemplate", template)]);
      assert.equal(woken.code, 200);
      const pod = await play.untilPod(() => true, "exist");
      assert.equal(at(pod, "spec", "containers", 0, "image"), "example.invalid/agent:2");
      assert.deepEqual(at(await play.sandbox(), "spec", "volumeClaimTemplates"), claims);
    },
  },
  {
    id: "product-writes/wake-before-look",
    title: "a suspend that is followed by a wake before the pod is gone ends with a running workspace of one pod",
    source,
    needs,
    run: async (stage) => {
      const play = playWorkspace(stage);
      await play.open();
      await suspend(stage, play, "suspend");
      await play.untilReason("Suspended", "PodTerminating");
      const woken = await write(stage, play, wakeOf((await play.sandbox()) ?? null, "wake"));
      assert.equal(woken.code, 200);
      const lying = await play.untilReason("Suspended", "NotSuspended");
      assert.ok(isTerminating(await play.pod()), "the old pod is still the only one");
      assert.equal(at(conditionIn(lying, "Ready"), "status"), "True");
      await play.kubelet.finish();
      await play.untilPod((pod) => !isTerminating(pod), "be another");
    },
  },
];
