import assert from "node:assert/strict";
import { type ConformanceCase, fromController } from "../suite/conformance-case.ts";
import { at, isObject, type Json, listAt, pick, textAt } from "../suite/json.ts";
import { claimObject, claimSpec, ownerOf, podObject, secretObject } from "../suite/objects.ts";
import {
  adoptableLabel,
  conditionIn,
  isTerminating,
  nameHash,
  nameHashLabel,
  playSandbox,
  podNameAnnotation,
} from "../suite/sandbox-play.ts";
import type { Stage } from "../suite/stage.ts";

const needs = ["controller"] as const;

/** What the controller decides of a child; what the server adds is left out. */
function childShape(object: Json | undefined): Json {
  return pick(at(object, "metadata"), "name", "labels", "annotations", "ownerReferences", "finalizers");
}

/** Waits until the whole first pass is done: the status is written last. */
const firstPass = (play: ReturnType<typeof playSandbox>) =>
  play.untilReason(
    "Ready",
    "DependenciesNotReady",
    (sandbox) => at(sandbox, "metadata", "annotations", podNameAnnotation) === play.name,
  );

async function versionOf(stage: Stage, plural: string): Promise<string> {
  return textAt(await stage.do("GET", stage.path(plural), { query: { limit: "1" } }), "metadata", "resourceVersion");
}

/** What the Sandbox controller makes of a Sandbox: its pod, claims and Service, their names, labels and owners. */
export const controllerChildren: readonly ConformanceCase[] = [
  {
    id: "controller-children/order",
    title: "the first pass writes claim, pod, the pod's name on the Sandbox, Service and status, in this order",
    source: fromController("3.8"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true, spec: { service: true } });
      const from: Record<string, string> = {};
      for (const plural of ["persistentvolumeclaims", "pods", "services"])
        from[plural] = await versionOf(stage, plural);
      const since = await versionOf(stage, "sandboxes");
      await play.create();
      await firstPass(play);
      const writes: { version: bigint; what: string }[] = [];
      for (const [plural, resourceVersion] of Object.entries(from)) {
        const name = plural === "persistentvolumeclaims" ? play.claimName : play.name;
        const watch = await stage.watch(stage.path(plural), {
          resourceVersion,
          fieldSelector: `metadata.name=${name}`,
        });
        const [event] = await watch.take(1);
        const version = BigInt(textAt(event?.object, "metadata", "resourceVersion"));
        writes.push({ version, what: `${event?.type} ${plural}` });
      }
      const watch = await stage.watch(stage.path("sandboxes"), {
        resourceVersion: since,
        fieldSelector: `metadata.name=${play.name}`,
      });
      const events = await watch.upTo(({ object }) => at(object, "status", "conditions") !== undefined);
      for (const { type, object } of events) {
        const what =
          at(object, "status", "conditions") !== undefined
            ? "status"
            : at(object, "metadata", "annotations", podNameAnnotation) !== undefined
              ? "pod name"
              : "itself";
        writes.push({ version: BigInt(textAt(object, "metadata", "resourceVersion")), what: `${type} ${what}` });
      }
      const order = writes.sort((a, b) => (a.version < b.version ? -1 : 1)).map(({ what }) => what);
      stage.note("order", order);
      assert.deepEqual(order, [
        "ADDED itself",
        "ADDED persistentvolumeclaims",
        "ADDED pods",
        "MODIFIED pod name",
        "ADDED services",
        "MODIFIED status",
      ]);
    },
  },
  {
    id: "controller-children/pod",
    title:
      "the pod has the Sandbox's name, the template's labels and annotations, the name's hash, and one controlling owner",
    source: fromController("3.2"),
    needs,
    run: async (stage) => {
      const podMetadata = { labels: { app: "a" }, annotations: { note: "n" } };
      const play = playSandbox(stage, { podMetadata, metadata: { labels: { own: "1" }, annotations: { mine: "1" } } });
      await play.create();
      await firstPass(play);
      const pod = await play.pod();
      stage.note("pod", childShape(pod));
      stage.note(
        "spec",
        pick(at(pod, "spec"), "hostname", "subdomain", "volumes", "restartPolicy", "terminationGracePeriodSeconds"),
      );
      assert.equal(at(pod, "metadata", "labels", nameHashLabel), nameHash(play.name));
      assert.equal(at(pod, "metadata", "labels", "own"), undefined);
      assert.equal(at(pod, "metadata", "labels", "app"), "a");
      const sandbox = await play.sandbox();
      assert.deepEqual(at(pod, "metadata", "ownerReferences"), [
        ownerOf(sandbox ?? null, { controller: true, blockOwnerDeletion: true }),
      ]);
      assert.equal(at(sandbox, "metadata", "annotations", podNameAnnotation), play.name);
      stage.note("annotations of the Sandbox", at(sandbox, "metadata", "annotations") ?? null);
    },
  },
  {
    id: "controller-children/hash-vectors",
    title: "the name's hash is FNV-1a of 32 bits",
    source: fromController("3.2"),
    needs,
    run: async () => {
      assert.equal(nameHash("a"), "e40c292c");
      assert.equal(nameHash("my-sandbox"), "374de8f5");
    },
  },
  {
    id: "controller-children/label-filter",
    title: "labels and annotations of agent-sandbox's own domains in a template do not reach the pod",
    source: fromController("3.2"),
    needs,
    run: async (stage) => {
      const own = {
        "agents.x-k8s.io/invented": "x",
        "extensions.agents.x-k8s.io/invented": "x",
        [nameHashLabel]: "00000000",
        plain: "y",
      };
      const play = playSandbox(stage, { podMetadata: { labels: own, annotations: own } });
      await play.create();
      await firstPass(play);
      const pod = await play.pod();
      stage.note("pod", childShape(pod));
      assert.equal(at(pod, "metadata", "labels", "agents.x-k8s.io/invented"), undefined);
      assert.equal(at(pod, "metadata", "labels", nameHashLabel), nameHash(play.name));
    },
  },
  {
    id: "controller-children/created-by",
    title: "the created-by label of a Sandbox reaches its pod, as one of four values",
    source: fromController("3.2"),
    needs,
    run: async (stage) => {
      for (const value of ["go-client", "someone"]) {
        const play = playSandbox(stage, {
          label: value,
          metadata: { labels: { "agents.x-k8s.io/created-by": value } },
        });
        await play.create();
        await firstPass(play);
        stage.note(value, at(await play.pod(), "metadata", "labels") ?? null);
      }
    },
  },
  {
    id: "controller-children/claim-volume",
    title: "each claim template adds a volume of its name to the pod, or replaces the one of that name",
    source: fromController("3.2"),
    needs,
    run: async (stage) => {
      const volumes = [
        { name: "run", emptyDir: {} },
        { name: "workspace", emptyDir: {} },
      ];
      const play = playSandbox(stage, { claim: true, podSpec: { volumes } });
      await play.create();
      await firstPass(play);
      const found = listAt(await play.pod(), "spec", "volumes");
      stage.note("volumes", found);
      assert.deepEqual(
        found.find((volume) => at(volume, "name") === "workspace"),
        { name: "workspace", persistentVolumeClaim: { claimName: play.claimName } },
      );
    },
  },
  {
    id: "controller-children/claim",
    title: "a claim is named <template>-<sandbox>, labelled with the hash, owned, and of the spec as it was written",
    source: fromController("3.3"),
    needs,
    run: async (stage) => {
      const volumeClaimTemplates = [
        {
          metadata: { name: "disk", labels: { l: "1" }, annotations: { a: "1" } },
          spec: { ...claimSpec("1024Mi"), volumeMode: "Block" },
        },
      ];
      const play = playSandbox(stage, { spec: { volumeClaimTemplates } });
      await play.create();
      await firstPass(play);
      const claim = await stage.get("persistentvolumeclaims", `disk-${play.name}`);
      stage.note("claim", childShape(claim));
      stage.note("spec", pick(at(claim, "spec"), "accessModes", "resources", "volumeMode", "storageClassName"));
      assert.equal(at(claim, "spec", "volumeMode"), "Block");
      assert.equal(at(claim, "metadata", "ownerReferences", 0, "controller"), true);
    },
  },
  {
    id: "controller-children/block-untouched",
    title: "for a Block claim the pod gets the volume; devices and mounts are the template's own",
    source: fromController("3.3"),
    needs,
    run: async (stage) => {
      const volumeClaimTemplates = [{ metadata: { name: "workspace" }, spec: { ...claimSpec(), volumeMode: "Block" } }];
      const containers = [
        {
          name: "agent",
          image: "example.invalid/agent:1",
          volumeDevices: [{ name: "workspace", devicePath: "/dev/disk" }],
        },
      ];
      const play = playSandbox(stage, { spec: { volumeClaimTemplates }, podSpec: { containers } });
      await play.create();
      await firstPass(play);
      const pod = await play.pod();
      stage.note("devices", at(pod, "spec", "containers", 0, "volumeDevices") ?? null);
      assert.equal(at(pod, "spec", "containers", 0, "volumeMounts"), undefined);
    },
  },
  {
    id: "controller-children/service",
    title:
      "the Service is headless, of the Sandbox's name, selects by the hash, and has the containers' ports once, sorted",
    source: fromController("3.4"),
    needs,
    run: async (stage) => {
      const containers = [
        {
          name: "agent",
          image: "example.invalid/agent:1",
          ports: [
            { name: "web", containerPort: 8080 },
            { containerPort: 1024 },
            { containerPort: 53, protocol: "UDP" },
          ],
        },
        { name: "side", image: "example.invalid/side:1", ports: [{ containerPort: 1024 }, { containerPort: 53 }] },
      ];
      const play = playSandbox(stage, { spec: { service: true }, podSpec: { containers } });
      await play.create();
      await play.untilReason(
        "Ready",
        "DependenciesNotReady",
        (sandbox) => at(sandbox, "status", "service") !== undefined,
      );
      const service = await stage.get("services", play.name);
      stage.note("service", childShape(service));
      stage.note(
        "spec",
        pick(at(service, "spec"), "clusterIP", "selector", "ports", "publishNotReadyAddresses", "type"),
      );
      assert.equal(at(service, "spec", "clusterIP"), "None");
      assert.deepEqual(at(service, "spec", "selector"), { [nameHashLabel]: nameHash(play.name) });
      await play.noteStatus("status");
    },
  },
  {
    id: "controller-children/service-no-ports",
    title: "without container ports the Service has none",
    source: fromController("3.4"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { service: true } });
      await play.create();
      await stage.until("services", play.name, (service) => service !== undefined, "exist");
      assert.equal(at(await stage.get("services", play.name), "spec", "ports"), undefined);
    },
  },
  {
    id: "controller-children/service-tri-state",
    title: "service unset makes none and keeps an owned one; false removes it; true makes it",
    source: fromController("3.4"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.create();
      await firstPass(play);
      await play.noteStatus("unset");
      assert.equal(await stage.get("services", play.name), undefined);
      await play.patch({ spec: { service: true } });
      await stage.until("services", play.name, (service) => service !== undefined, "exist");
      await play.patch({ spec: { service: null } });
      await play.untilReason("Ready", "DependenciesNotReady");
      assert.ok((await stage.get("services", play.name)) !== undefined);
      await play.noteStatus("unset again");
      await play.patch({ spec: { service: false } });
      await stage.untilGone("services", play.name);
      await play.untilReason(
        "Ready",
        "DependenciesNotReady",
        (sandbox) => at(sandbox, "status", "service") === undefined,
      );
      await play.noteStatus("false");
    },
  },
  {
    id: "controller-children/service-repaired",
    title: "an owned Service that is deleted comes back, and one whose selector or ports were changed is repaired",
    source: fromController("3.4"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { service: true } });
      await play.create();
      await stage.until("services", play.name, (service) => service !== undefined, "exist");
      await stage.merge("services", play.name, {
        spec: { selector: { [nameHashLabel]: "wrong" }, ports: [{ port: 9 }] },
      });
      await stage.until(
        "services",
        play.name,
        (service) =>
          at(service, "spec", "selector", nameHashLabel) === nameHash(play.name) &&
          at(service, "spec", "ports") === undefined,
        "be repaired",
      );
      const before = await stage.get("services", play.name);
      await stage.do("DELETE", stage.path("services", play.name));
      await stage.until(
        "services",
        play.name,
        (service) => service !== undefined && at(service, "metadata", "uid") !== at(before, "metadata", "uid"),
        "come back",
      );
    },
  },
  {
    id: "controller-children/service-foreign",
    title: "a Service of that name that is not ours is an error and is not touched",
    source: fromController("3.4"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { service: true } });
      const spec = { clusterIP: "None", selector: { other: "x" } };
      const foreign = await stage.create("services", { metadata: { name: play.name }, spec });
      await play.create();
      await play.untilReason("Ready", "ReconcilerError");
      await play.noteStatus("status");
      const now = await stage.get("services", play.name);
      assert.equal(textAt(now, "metadata", "resourceVersion"), textAt(foreign, "metadata", "resourceVersion"));
    },
  },
  {
    id: "controller-children/service-adopted",
    title: "an unowned headless Service marked as adoptable is adopted and repaired",
    source: fromController("3.4"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { service: true } });
      const metadata = { name: play.name, labels: { [adoptableLabel]: "true" } };
      await stage.create("services", { metadata, spec: { clusterIP: "None", selector: { other: "x" } } });
      await play.create();
      await stage.until(
        "services",
        play.name,
        (service) => listAt(service, "metadata", "ownerReferences").length === 1,
        "be adopted",
      );
      await stage.until(
        "services",
        play.name,
        (service) => at(service, "spec", "selector", nameHashLabel) === nameHash(play.name),
        "be repaired",
      );
      const adopted = await stage.get("services", play.name);
      stage.note("service", childShape(adopted));
      stage.note("selector", at(adopted, "spec", "selector") ?? null);
    },
  },
  {
    id: "controller-children/pod-foreign",
    title: "a pod of that name that is not ours is an error while Running and is not touched",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      const foreign = await stage.create("pods", podObject(play.name));
      await play.create();
      await play.untilReason("Ready", "ReconcilerError");
      await play.noteStatus("status");
      const now = await play.pod();
      assert.equal(textAt(now, "metadata", "resourceVersion"), textAt(foreign, "metadata", "resourceVersion"));
    },
  },
  {
    id: "controller-children/pod-foreign-owner",
    title: "a pod that another object controls is an error, though it says that it may be adopted",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      const other = await stage.create("secrets", secretObject(stage.name("other")));
      const ownerReferences = [ownerOf(other, { controller: true })];
      await stage.create("pods", podObject(play.name, {}, { labels: { [adoptableLabel]: "true" }, ownerReferences }));
      await play.create();
      await play.untilReason("Ready", "ReconcilerError");
      await play.noteStatus("status");
      assert.equal(listAt(await play.pod(), "metadata", "ownerReferences").length, 1);
    },
  },
  {
    id: "controller-children/pod-foreign-suspended",
    title: "while Suspended a pod that is not ours is left alone: Suspended=False/PodNotOwned",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { spec: { operatingMode: "Suspended" } });
      await stage.create("pods", podObject(play.name));
      await play.create();
      await play.untilReason("Suspended", "PodNotOwned");
      await play.noteStatus("status");
      assert.ok(!isTerminating(await play.pod()));
    },
  },
  {
    id: "controller-children/pod-adopted",
    title: "an unowned pod is adopted when it is marked as adoptable, or carries the right hash",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      for (const [label, labels] of [
        ["marked", () => ({ [adoptableLabel]: "true" })],
        ["hashed", (name: string) => ({ [nameHashLabel]: nameHash(name) })],
      ] as const) {
        const play = playSandbox(stage, { label });
        await stage.create("pods", podObject(play.name, {}, { labels: labels(play.name) }));
        await play.create();
        await play.untilPod((pod) => listAt(pod, "metadata", "ownerReferences").length === 1, "be adopted");
        await firstPass(play);
        stage.note(label, childShape(await play.pod()));
      }
    },
  },
  {
    id: "controller-children/pod-of-another-name",
    title: "a pod that the Sandbox's annotation names is adopted under its own name",
    source: fromController("3.2"),
    needs,
    run: async (stage) => {
      const pooled = stage.name("pooled");
      await stage.create("pods", podObject(pooled, {}, { labels: { [adoptableLabel]: "true", pool: "x" } }));
      const play = playSandbox(stage, { metadata: { annotations: { [podNameAnnotation]: pooled } } });
      await play.create();
      const adopted = await stage.until(
        "pods",
        pooled,
        (pod) => listAt(pod, "metadata", "ownerReferences").length === 1,
        "be adopted",
      );
      stage.note("pod", childShape(adopted));
      await play.untilReason("Ready", "DependenciesNotReady");
      assert.equal(await play.pod(), undefined);
      assert.equal(at(await play.sandbox(), "metadata", "annotations", podNameAnnotation), pooled);
      await stage.do("DELETE", stage.path("pods", pooled), { body: { gracePeriodSeconds: 0 } });
      await play.untilPod(() => true, "be made under the Sandbox's name");
    },
  },
  {
    id: "controller-children/claim-foreign",
    title: "a claim of that name that is not ours is an error, and the pod that names it is made all the same",
    source: fromController("3.1"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true });
      const foreign = await stage.create("persistentvolumeclaims", claimObject(play.claimName));
      await play.create();
      await play.untilReason("Ready", "ReconcilerError");
      await play.noteStatus("status");
      const pod = await play.untilPod(() => true, "exist");
      assert.ok(JSON.stringify(at(pod, "spec", "volumes")).includes(play.claimName));
      const claim = await stage.get("persistentvolumeclaims", play.claimName);
      assert.equal(textAt(claim, "metadata", "uid"), textAt(foreign, "metadata", "uid"));
      assert.equal(at(claim, "metadata", "ownerReferences"), undefined);
    },
  },
  {
    id: "controller-children/claim-adopted",
    title: "an unowned claim marked as adoptable is adopted, and its spec is left as it is",
    source: fromController("3.3"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true });
      const labels = { [adoptableLabel]: "true" };
      const spec = { resources: { requests: { storage: "7Gi" } } };
      await stage.create("persistentvolumeclaims", claimObject(play.claimName, spec, { labels }));
      await play.create();
      const adopted = await stage.until(
        "persistentvolumeclaims",
        play.claimName,
        (claim) => listAt(claim, "metadata", "ownerReferences").length === 1,
        "be adopted",
      );
      stage.note("claim", childShape(adopted));
      assert.equal(at(adopted, "spec", "resources", "requests", "storage"), "7Gi");
    },
  },
  {
    id: "controller-children/claim-recreated-late",
    title: "a deleted claim comes back empty, not at once but at the next pass of any cause",
    source: fromController("3.3"),
    needs: ["controller", "claim-protection"],
    run: async (stage) => {
      const play = playSandbox(stage, { claim: true, spec: { operatingMode: "Suspended" } });
      await play.create();
      await play.untilReason("Suspended", "PodTerminated");
      const before = await stage.get("persistentvolumeclaims", play.claimName);
      await stage.do("DELETE", stage.path("persistentvolumeclaims", play.claimName));
      await stage.untilGone("persistentvolumeclaims", play.claimName);
      // Another Sandbox's whole pass is proof that the controller had its time.
      const other = playSandbox(stage, { claim: true, label: "other" });
      await other.create();
      await firstPass(other);
      assert.equal(await stage.get("persistentvolumeclaims", play.claimName), undefined);
      await play.patch({ metadata: { annotations: { touched: "1" } } });
      const after = await stage.until(
        "persistentvolumeclaims",
        play.claimName,
        (claim) => claim !== undefined,
        "come back",
      );
      assert.notEqual(textAt(after, "metadata", "uid"), textAt(before, "metadata", "uid"));
    },
  },
  {
    id: "controller-children/template-metadata-live",
    title: "edits of a template's labels and annotations reach the live pod, removals too",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const podMetadata = { labels: { a: "1", b: "1" }, annotations: { a: "1", b: "1" } };
      const play = playSandbox(stage, { podMetadata });
      await play.create();
      const before = await play.untilPod(() => true, "exist");
      const metadata = { labels: { a: "2", b: null, c: "3" }, annotations: { a: "2", b: null, c: "3" } };
      await play.patch({ spec: { podTemplate: { metadata } } });
      const pod = await play.untilPod((object) => at(object, "metadata", "labels", "c") === "3", "be relabelled");
      assert.equal(textAt(pod, "metadata", "uid"), textAt(before, "metadata", "uid"));
      stage.note("pod", childShape(pod));
      assert.equal(at(pod, "metadata", "labels", "b"), undefined);
    },
  },
  {
    id: "controller-children/template-spec-later",
    title: "an edited pod spec is left to the next pod",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { podSpec: { terminationGracePeriodSeconds: 20 } });
      await play.open();
      const containers = [{ name: "agent", image: "example.invalid/agent:2" }];
      await play.patch({ spec: { podTemplate: { spec: { containers } } } });
      await play.untilReason("Ready", "DependenciesReady");
      const image = async () => at(await play.pod(), "spec", "containers", 0, "image");
      assert.equal(await image(), "example.invalid/agent:1");
      await play.setMode("Suspended");
      await play.untilPod(isTerminating, "be terminating");
      await play.kubelet.finish();
      await play.untilReason("Suspended", "PodTerminated");
      await play.setMode("Running");
      await play.untilPod(() => true, "exist");
      assert.equal(await image(), "example.invalid/agent:2");
    },
  },
  {
    id: "controller-children/several-pods",
    title: "several pods of one owner: nothing is done, Ready=False/MultiplePods, one Warning event",
    source: fromController("3.6"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage);
      await play.open();
      const owner = ownerOf((await play.sandbox()) ?? null, { controller: true, blockOwnerDeletion: true });
      const second = stage.name("second");
      const labels = { [nameHashLabel]: nameHash(play.name) };
      await stage.create("pods", podObject(second, {}, { labels, ownerReferences: [owner] }));
      const sandbox = await play.untilReason("Ready", "MultiplePods");
      await play.noteStatus("status");
      assert.ok(!isTerminating(await play.pod()));
      assert.ok(!isTerminating(await stage.get("pods", second)));
      const uid = textAt(sandbox, "metadata", "uid");
      const query = { fieldSelector: `involvedObject.uid=${uid},reason=MultiplePods` };
      await stage.eventually("an event tells of it", async () => {
        const { body } = await stage.raw("GET", stage.path("events"), { query });
        return listAt(body, "items").length > 0;
      });
      const { body } = await stage.raw("GET", stage.path("events"), { query });
      stage.note("event", pick(at(body, "items", 0), "type", "reason", "message"));
      await stage.do("DELETE", stage.path("pods", second), { body: { gracePeriodSeconds: 0 } });
      await play.untilReason("Ready", "DependenciesReady");
    },
  },
  {
    id: "controller-children/bad-service-name",
    title: "a Sandbox name that is no Service name shows as ReconcilerError, and its pod runs",
    source: fromController("3.4"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { label: "dotted.name", spec: { service: true } });
      await play.create();
      const sandbox = await play.untilReason("Ready", "ReconcilerError");
      const message = `${at(conditionIn(sandbox, "Ready"), "message")}`;
      assert.ok(message.startsWith("Error seen: "), message);
      stage.note("message", message);
      await play.untilPod(() => true, "exist");
    },
  },
  {
    id: "controller-children/invalid-pod",
    title: "a pod that the server refuses shows as ReconcilerError with the server's words",
    source: fromController("3.5"),
    needs,
    run: async (stage) => {
      const play = playSandbox(stage, { podSpec: { containers: [{ name: "agent" }] } });
      await play.create();
      const sandbox = await play.untilReason("Ready", "ReconcilerError");
      stage.note("ready", conditionIn(sandbox, "Ready") ?? null);
      assert.ok(isObject(conditionIn(sandbox, "Suspended")));
      stage.note("suspended", conditionIn(sandbox, "Suspended") ?? null);
    },
  },
];
