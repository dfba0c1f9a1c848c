import assert from "node:assert/strict";
import { type ConformanceCase, fromController, fromKubernetes } from "../suite/conformance-case.ts";
import { at, type Json, listAt, pick, textAt } from "../suite/json.ts";
import { claimSpec, podTemplate, sandboxObject } from "../suite/objects.ts";
import { jsonPatch, mergePatch, type Stage } from "../suite/stage.ts";

const source = fromController("2.1");
const asleep = { operatingMode: "Suspended" }; // the controller leaves the object's spec alone, and makes no pod

const specOf = (body: Json): Json => (at(body, "kind") === "Status" ? body : (at(body, "spec") ?? null));

function create(stage: Stage, step: string, spec: object, query: Record<string, string> = {}) {
  const body = sandboxObject(stage.name("sandbox"), { ...asleep, ...spec });
  return stage.call(step, "POST", stage.path("sandboxes"), { body, query, seen: specOf });
}

const claims = [{ metadata: { name: "workspace" }, spec: claimSpec() }];

/** What the Sandbox's definition makes of an object: defaults, pruning, refusals. */
export const sandboxSchema: readonly ConformanceCase[] = [
  {
    id: "sandbox-schema/defaults",
    title: "operatingMode, shutdownPolicy and port protocols are defaulted",
    source,
    run: async (stage) => {
      const containers = [{ name: "agent", image: "x", ports: [{ containerPort: 1024 }] }];
      const body = sandboxObject(stage.name("sandbox"), { podTemplate: podTemplate({ containers }) });
      const { body: made } = await stage.call("create", "POST", stage.path("sandboxes"), { body, seen: specOf });
      assert.equal(at(made, "spec", "operatingMode"), "Running");
      assert.equal(at(made, "spec", "shutdownPolicy"), "Retain");
      assert.equal(at(made, "spec", "service"), undefined);
      const port = at(made, "spec", "podTemplate", "spec", "containers", 0, "ports", 0);
      assert.deepEqual(port, { containerPort: 1024, protocol: "TCP" });
    },
  },
  {
    id: "sandbox-schema/create-answer",
    title: "a created Sandbox is answered with 201 and what the server added",
    source: fromKubernetes,
    run: async (stage) => {
      const body = sandboxObject(stage.name("sandbox"), asleep, { labels: { a: "1" }, annotations: { b: "2" } });
      const { code, body: made } = await stage.call("create", "POST", stage.path("sandboxes"), { body });
      assert.equal(code, 201);
      assert.equal(at(made, "metadata", "generation"), 1);
    },
  },
  {
    id: "sandbox-schema/pod-spec-defaults",
    title: "the definition's defaults in a pod spec, and none of the pod's own",
    source,
    run: async (stage) => {
      const spec = {
        imagePullSecrets: [{}],
        volumes: [
          { name: "a", emptyDir: {} },
          { name: "b", configMap: {} },
          { name: "c", azureDisk: { diskName: "d", diskURI: "u" } },
          { name: "e", iscsi: { iqn: "i", lun: 0, targetPortal: "t" } },
        ],
        containers: [
          {
            name: "agent",
            image: "x",
            env: [{ name: "E", valueFrom: { secretKeyRef: { key: "k" } } }],
            envFrom: [{ configMapRef: {} }],
            readinessProbe: { grpc: { port: 1 } },
            ports: [{ containerPort: 1, protocol: "UDP" }, { containerPort: 1 }],
          },
        ],
      };
      const { code } = await create(stage, "create", { podTemplate: podTemplate(spec) });
      assert.equal(code, 201);
    },
  },
  {
    id: "sandbox-schema/prunes-unknown",
    title: "unknown members are dropped, at every depth",
    source,
    run: async (stage) => {
      const template = { ...podTemplate({ invented: 1 }, { labels: { a: "1" } }), invented: true };
      const { body } = await create(stage, "create", { invented: 1, podTemplate: template });
      assert.equal(at(body, "spec", "invented"), undefined);
      assert.equal(at(body, "spec", "podTemplate", "invented"), undefined);
      assert.equal(at(body, "spec", "podTemplate", "spec", "invented"), undefined);
    },
  },
  {
    id: "sandbox-schema/prunes-template-metadata",
    title: "of a pod template's metadata only labels and annotations stay",
    source,
    run: async (stage) => {
      const metadata = { name: "n", namespace: "m", labels: { a: "1" }, annotations: { b: "2" }, finalizers: ["x/y"] };
      const { body } = await create(stage, "create", { podTemplate: { ...podTemplate(), metadata } });
      const kept = at(body, "spec", "podTemplate", "metadata");
      assert.deepEqual(kept, { labels: { a: "1" }, annotations: { b: "2" } });
    },
  },
  {
    id: "sandbox-schema/prunes-top-level",
    title: "unknown members beside spec and status are dropped",
    source,
    run: async (stage) => {
      const body = { ...sandboxObject(stage.name("sandbox"), asleep), invented: 1 };
      const { body: made } = await stage.call("create", "POST", stage.path("sandboxes"), { body });
      assert.equal(at(made, "invented"), undefined);
    },
  },
  {
    id: "sandbox-schema/field-validation-strict",
    title: "fieldValidation=Strict refuses unknown and doubled members with 400",
    source: fromKubernetes,
    run: async (stage) => {
      const query = { fieldValidation: "Strict" };
      const { code } = await create(
        stage,
        "unknown",
        { invented: 1, podTemplate: podTemplate({ invented: 1 }) },
        query,
      );
      assert.equal(code, 400);
      const name = stage.name("doubled");
      const text = JSON.stringify(sandboxObject(name, asleep)).replace(
        '"spec":{',
        '"spec":{"service":true,"service":true,',
      );
      await stage.call("doubled", "POST", stage.path("sandboxes"), { body: text, query, seen: specOf });
      const known = await create(stage, "known", { service: true }, query);
      assert.equal(known.code, 201);
    },
  },
  {
    id: "sandbox-schema/field-validation-warn",
    title: "fieldValidation=Warn, which is the default, names dropped members in Warning headers",
    source: fromKubernetes,
    run: async (stage) => {
      const { code } = await create(stage, "warn", { invented: 1 }, { fieldValidation: "Warn" });
      assert.equal(code, 201);
      await create(stage, "default", { invented: 1, alsoInvented: 2 });
      await create(stage, "ignore", { invented: 1 }, { fieldValidation: "Ignore" });
    },
  },
  {
    id: "sandbox-schema/field-validation-patch",
    title: "field validation applies to patches and PUTs too",
    source: fromKubernetes,
    run: async (stage) => {
      const name = stage.name("sandbox");
      const made = await stage.create("sandboxes", sandboxObject(name, asleep));
      const path = stage.path("sandboxes", name);
      const query = { fieldValidation: "Strict" };
      // The refusal quotes the whole object; what it says of it stands behind that.
      const seen = (answer: Json): Json => ({
        ...pick(answer, "code", "reason"),
        details: {
          ...pick(at(answer, "details"), "name", "group", "kind"),
          field: at(answer, "details", "causes", 0, "field") ?? null,
        },
        end: `${at(answer, "message")}`.split(": ").slice(-2).join(": "),
      });
      const merge = await stage.call("merge", "PATCH", path, {
        body: { spec: { invented: 1 } },
        type: mergePatch,
        query,
        seen,
      });
      const json = await stage.call("json", "PATCH", path, {
        body: [{ op: "add", path: "/spec/invented", value: 1 }],
        type: jsonPatch,
        query,
        seen,
      });
      assert.ok(merge.code >= 400 && json.code >= 400);
      const resourceVersion = textAt(made, "metadata", "resourceVersion");
      const put = await stage.call("put", "PUT", path, {
        body: sandboxObject(name, { ...asleep, invented: 1 }, { resourceVersion }),
        query,
      });
      assert.ok(put.code >= 400);
      const warned = await stage.call("warned", "PATCH", path, {
        body: [{ op: "add", path: "/spec/invented", value: 1 }],
        type: jsonPatch,
        seen: specOf,
      });
      assert.equal(warned.code, 200);
    },
  },
  {
    id: "sandbox-schema/field-validation-unknown",
    title: "an unknown fieldValidation is refused",
    source: fromKubernetes,
    run: async (stage) => {
      const { code } = await create(stage, "create", {}, { fieldValidation: "Sometimes" });
      assert.ok(code >= 400);
    },
  },
  {
    id: "sandbox-schema/enums",
    title: "a value outside its enumeration is 422 and names the supported ones",
    source,
    run: async (stage) => {
      assert.equal((await create(stage, "mode", { operatingMode: "Asleep" })).code, 422);
      assert.equal((await create(stage, "policy", { shutdownPolicy: "Keep" })).code, 422);
      const body = sandboxObject(stage.name("sandbox"), { operatingMode: "Asleep", shutdownPolicy: "Keep" });
      // Which of the two comes first differs from answer to answer.
      const seen = (answer: Json): Json =>
        listAt(answer, "details", "causes")
          .map((cause) => ["field", "reason", "message"].map((member) => at(cause, member)).join(" "))
          .sort();
      const both = await stage.call("both", "POST", stage.path("sandboxes"), { body, seen });
      assert.equal(both.code, 422);
      assert.equal((await create(stage, "case", { operatingMode: "suspended" })).code, 422);
    },
  },
  {
    id: "sandbox-schema/required",
    title: "spec, podTemplate, its spec and its containers are required",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      const head = { apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", metadata: { name } };
      const bodies = {
        "no spec": head,
        "no template": { ...head, spec: {} },
        "no pod spec": { ...head, spec: { podTemplate: {} } },
        "no containers": { ...head, spec: { podTemplate: { spec: {} } } },
        "no container name": { ...head, spec: { podTemplate: { spec: { containers: [{ image: "x" }] } } } },
        "null template": { ...head, spec: { podTemplate: null } },
        "null spec": { ...head, spec: null },
      };
      for (const [step, body] of Object.entries(bodies)) {
        const { code } = await stage.call(step, "POST", stage.path("sandboxes"), { body });
        assert.equal(code, 422);
      }
    },
  },
  {
    id: "sandbox-schema/types",
    title: "a value of another type is 422 and names both",
    source,
    run: async (stage) => {
      const wrong = {
        "service text": { service: "yes" },
        "mode number": { operatingMode: 1 },
        "claims object": { volumeClaimTemplates: {} },
        "template list": { podTemplate: [] },
        "labels number": { podTemplate: { ...podTemplate(), metadata: { labels: { a: 1 } } } },
        "grace text": { podTemplate: podTemplate({ terminationGracePeriodSeconds: "soon" }) },
        "grace fraction": { podTemplate: podTemplate({ terminationGracePeriodSeconds: 1.5 }) },
      };
      for (const [step, spec] of Object.entries(wrong)) {
        const { code } = await create(stage, step, spec);
        assert.equal(code, 422);
      }
    },
  },
  {
    id: "sandbox-schema/null-values",
    title: "a null takes the default or is pruned, as if it had not been sent",
    source: fromKubernetes,
    run: async (stage) => {
      const body = sandboxObject(stage.name("sandbox"), { operatingMode: null, service: null, shutdownTime: null });
      const answer = await stage.call("create", "POST", stage.path("sandboxes"), { body, seen: specOf });
      if (answer.code === 201) assert.equal(at(answer.body, "spec", "operatingMode"), "Running");
    },
  },
  {
    id: "sandbox-schema/shutdown-time",
    title: "shutdownTime has to be a date and time",
    source,
    run: async (stage) => {
      const { code } = await create(stage, "wrong", { shutdownTime: "tomorrow" });
      assert.equal(code, 422);
      const right = await create(stage, "right", { shutdownTime: "2099-01-01T00:00:00Z" });
      assert.equal(right.code, 201);
      await create(stage, "offset", { shutdownTime: "2099-01-01T00:00:00.5+02:00" });
    },
  },
  {
    id: "sandbox-schema/int-or-string",
    title: "quantities and probe ports may be numbers or texts and stay as they were sent",
    source,
    run: async (stage) => {
      const containers = [
        {
          name: "agent",
          image: "x",
          resources: { limits: { cpu: 1, memory: "1024Mi" } },
          readinessProbe: { httpGet: { port: "web" } },
          livenessProbe: { tcpSocket: { port: 80 } },
        },
      ];
      const { code } = await create(stage, "create", { podTemplate: podTemplate({ containers }) });
      assert.equal(code, 201);
      const wrong = [{ name: "agent", image: "x", resources: { limits: { cpu: true } } }];
      assert.equal((await create(stage, "boolean", { podTemplate: podTemplate({ containers: wrong }) })).code, 422);
      const odd = [{ name: "agent", image: "x", resources: { limits: { cpu: "much" } } }];
      assert.equal((await create(stage, "text", { podTemplate: podTemplate({ containers: odd }) })).code, 422);
    },
  },
  {
    id: "sandbox-schema/map-keys",
    title: "doubled keys of map lists are 422: container names, ports, mounts, devices",
    source,
    run: async (stage) => {
      const twice = (container: object) => [{ name: "agent", image: "x", ...container }];
      const wrong = {
        containers: { containers: [...twice({}), ...twice({})] },
        ports: { containers: twice({ ports: [{ containerPort: 1 }, { containerPort: 1, protocol: "TCP" }] }) },
        mounts: {
          containers: twice({
            volumeMounts: [
              { name: "a", mountPath: "/a" },
              { name: "b", mountPath: "/a" },
            ],
          }),
        },
        devices: {
          containers: twice({
            volumeDevices: [
              { name: "a", devicePath: "/dev/a" },
              { name: "b", devicePath: "/dev/a" },
            ],
          }),
        },
      };
      for (const [step, spec] of Object.entries(wrong)) {
        const { code } = await create(stage, step, { podTemplate: podTemplate(spec) });
        assert.equal(code, 422);
      }
    },
  },
  {
    id: "sandbox-schema/claims-immutable",
    title: "volumeClaimTemplates cannot be changed, unset or set later, by PUT or patch",
    source,
    run: async (stage) => {
      const withClaims = stage.name("with");
      const made = await stage.create(
        "sandboxes",
        sandboxObject(withClaims, { ...asleep, volumeClaimTemplates: claims }),
      );
      const merge = (step: string, name: string, volumeClaimTemplates: unknown) =>
        stage.call(step, "PATCH", stage.path("sandboxes", name), {
          body: { spec: { volumeClaimTemplates } },
          type: mergePatch,
        });
      const larger = [{ metadata: { name: "workspace" }, spec: claimSpec("2Gi") }];
      assert.equal((await merge("changed", withClaims, larger)).code, 422);
      assert.equal((await merge("unset", withClaims, null)).code, 422);
      const sameAmount = [{ metadata: { name: "workspace" }, spec: claimSpec("1024Mi") }];
      assert.equal((await merge("same amount, other text", withClaims, sameAmount)).code, 422);
      const without = stage.name("without");
      await stage.create("sandboxes", sandboxObject(without, asleep));
      assert.equal((await merge("set", without, claims)).code, 422);
      const latest = (await stage.get("sandboxes", withClaims)) ?? made;
      const put = await stage.call("put", "PUT", stage.path("sandboxes", withClaims), {
        body: sandboxObject(withClaims, asleep, { resourceVersion: textAt(latest, "metadata", "resourceVersion") }),
      });
      assert.equal(put.code, 422);
    },
  },
  {
    id: "sandbox-schema/claims-equal",
    title: "volumeClaimTemplates that are sent again as they are stored are accepted",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, { ...asleep, volumeClaimTemplates: claims }));
      const answer = await stage.raw("PATCH", stage.path("sandboxes", name), {
        body: { spec: { volumeClaimTemplates: claims, service: true } },
        type: mergePatch,
      });
      assert.equal(answer.code, 200);
    },
  },
  {
    id: "sandbox-schema/templates-claims-mutable",
    title: "a SandboxTemplate is defaulted, and its claims may change",
    source: fromController("2.2"),
    run: async (stage) => {
      const name = stage.name("template");
      const body = {
        apiVersion: "extensions.agents.x-k8s.io/v1beta1",
        kind: "SandboxTemplate",
        metadata: { name },
        spec: { podTemplate: podTemplate(), volumeClaimTemplates: claims },
      };
      const { code } = await stage.call("create", "POST", stage.path("sandboxtemplates"), { body });
      assert.equal(code, 201);
      const changed = await stage.call("change", "PATCH", stage.path("sandboxtemplates", name), {
        body: { spec: { volumeClaimTemplates: null } },
        type: mergePatch,
      });
      assert.equal(changed.code, 200);
      const refused = await stage.call("refuse", "PATCH", stage.path("sandboxtemplates", name), {
        body: { spec: { networkPolicyManagement: "Perhaps" } },
        type: mergePatch,
      });
      assert.equal(refused.code, 422);
      const status = await stage.call("status", "GET", stage.path("sandboxtemplates", name, "status"));
      assert.equal(status.code, 404);
    },
  },
  {
    id: "sandbox-schema/generation",
    title: "the generation moves with the spec alone: not with metadata, status or an equal spec",
    source: fromKubernetes,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep));
      const generationAfter = async (body: object, subresource?: string) =>
        at(await stage.merge("sandboxes", name, body, subresource), "metadata", "generation") ?? null;
      const seen = {
        labels: await generationAfter({ metadata: { labels: { a: "1" } } }),
        annotations: await generationAfter({ metadata: { annotations: { a: "1" } } }),
        "equal spec": await generationAfter({ spec: { operatingMode: "Suspended" } }),
        status: await generationAfter({ status: { nodeName: "x" } }, "status"),
        spec: await generationAfter({ spec: { service: true } }),
        "pruned member": await generationAfter({ spec: { invented: 1 } }),
        "spec again": await generationAfter({ spec: { service: null } }),
      };
      stage.note("generations", seen);
      assert.deepEqual(Object.values(seen), [1, 1, 1, 1, 2, 2, 3]);
    },
  },
  {
    id: "sandbox-schema/status-separate",
    title: "the status endpoint ignores spec and metadata, the main endpoint ignores status",
    source: fromKubernetes,
    run: async (stage) => {
      const name = stage.name("sandbox");
      const body = { ...sandboxObject(name, asleep), status: { nodeName: "sent" } };
      const made = await stage.do("POST", stage.path("sandboxes"), { body });
      assert.equal(at(made, "status", "nodeName"), undefined);
      const main = await stage.merge("sandboxes", name, {
        status: { selector: "main" },
        metadata: { labels: { a: "1" } },
      });
      assert.notEqual(at(main, "status", "selector"), "main");
      const wish = { spec: { operatingMode: "Running" }, metadata: { labels: { b: "2" } }, status: { service: "sub" } };
      const sub = await stage.merge("sandboxes", name, wish, "status");
      assert.equal(at(sub, "status", "service"), "sub");
      assert.equal(at(sub, "spec", "operatingMode"), "Suspended");
      assert.deepEqual(at(sub, "metadata", "labels"), { a: "1" });
    },
  },
  {
    id: "sandbox-schema/status-metadata",
    title: "whether a status write may change annotations",
    source: fromKubernetes,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep));
      const wish = { metadata: { annotations: { "conformance.test/a": "1" } }, status: { selector: "a=b" } };
      const { body } = await stage.call("write", "PATCH", stage.path("sandboxes", name, "status"), {
        body: wish,
        type: mergePatch,
        seen: (answer) => at(answer, "metadata", "annotations", "conformance.test/a") ?? "ignored",
      });
      assert.equal(at(body, "kind"), "Sandbox");
    },
  },
  {
    id: "sandbox-schema/status-validated",
    title: "a status is checked against its schema: conditions need all their members",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep));
      const write = (step: string, condition: object) =>
        stage.call(step, "PATCH", stage.path("sandboxes", name, "status"), {
          body: { status: { conditions: [condition] } },
          type: mergePatch,
          seen: (answer) => (at(answer, "kind") === "Status" ? answer : (at(answer, "status", "conditions") ?? null)),
        });
      const whole = { type: "A", status: "True", reason: "R", message: "", lastTransitionTime: "2001-01-01T00:00:00Z" };
      assert.equal((await write("no reason", { ...whole, reason: undefined })).code, 422);
      assert.equal((await write("status", { ...whole, status: "Maybe" })).code, 422);
      assert.equal((await write("reason", { ...whole, reason: "not a reason" })).code, 422);
      assert.equal((await write("time", { ...whole, lastTransitionTime: "soon" })).code, 422);
    },
  },
];
