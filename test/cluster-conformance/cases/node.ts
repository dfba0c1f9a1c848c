import assert from "node:assert/strict";
import { type ConformanceCase, fromController } from "../suite/conformance-case.ts";
import { at, type Json, listAt, pick, textAt } from "../suite/json.ts";
import { conditionIn, isTerminating, playSandbox, type SandboxPlay } from "../suite/sandbox-play.ts";
import type { Stage } from "../suite/stage.ts";

const needs = ["node"] as const;
const both = ["controller", "node"] as const;
const source = "docs/design/local-node.md; a kubelet's documented behaviour";

/** A pod that runs a line of JavaScript. */
function runningPod(stage: Stage, name: string, script: string, spec: object = {}, container: object = {}): object {
  const main = { name: "main", image: stage.image, command: [stage.nodePath, "-e", script], ...container };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 5,
      containers: [main],
      ...spec,
    },
  };
}

const stays = "process.on('SIGTERM', () => process.exit(0)); setInterval(() => undefined, 1e9);";

/** A script that says when it listens to signals, and the probe that hears it. */
const listening = (script: string): string => `${script} require('fs').writeFileSync('/tmp/listening', '');`;
const whenListening = (stage: Stage): object => {
  const check = "process.exit(require('fs').existsSync('/tmp/listening') ? 0 : 1)";
  return { readinessProbe: { exec: { command: [stage.nodePath, "-e", check] }, periodSeconds: 1, timeoutSeconds: 5 } };
};

const isReady = (pod: Json | undefined): boolean =>
  listAt(pod, "status", "conditions").some((item) => at(item, "type") === "Ready" && at(item, "status") === "True");

const first = (pod: Json | undefined): Json => at(pod, "status", "containerStatuses", 0) ?? null;

async function create(stage: Stage, body: object): Promise<void> {
  await stage.create("pods", body);
}

function playReal(stage: Stage, script: string, container: object = {}, claim = true): SandboxPlay {
  const main = { name: "main", image: stage.image, command: [stage.nodePath, "-e", script], ...container };
  const podSpec = { nodeName: undefined, terminationGracePeriodSeconds: 5, containers: [main] };
  return playSandbox(stage, { ...(claim ? { claim: "provided" } : {}), podSpec });
}

/** What a node does with pods; these run real processes. */
export const node: readonly ConformanceCase[] = [
  {
    id: "node/runs",
    title: "a pod is placed, started and ready, with an address and a running container",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      await create(stage, runningPod(stage, name, stays));
      const pod = await stage.until("pods", name, isReady, "be ready");
      assert.equal(at(pod, "status", "phase"), "Running");
      assert.match(textAt(pod, "status", "podIP"), /^\d+\.\d+\.\d+\.\d+$/);
      assert.equal(at(pod, "status", "podIPs", 0, "ip"), at(pod, "status", "podIP"));
      assert.ok(textAt(pod, "spec", "nodeName").length > 0);
      assert.ok(textAt(pod, "status", "startTime").length > 0);
      const container = first(pod);
      assert.equal(at(container, "restartCount"), 0);
      assert.equal(at(container, "ready"), true);
      assert.ok(at(container, "state", "running", "startedAt") !== undefined);
      const types = listAt(pod, "status", "conditions")
        .filter((item) => at(item, "status") === "True")
        .map((item) => textAt(item, "type"));
      for (const type of ["PodScheduled", "Initialized", "ContainersReady", "Ready"])
        assert.ok(types.includes(type), type);
    },
  },
  {
    id: "node/readiness",
    title: "readiness follows the probe: not ready until it succeeds, and not ready again when it fails",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      const script =
        "const fs = require('fs'); setTimeout(() => { fs.writeFileSync('/tmp/ready', ''); setTimeout(() => fs.rmSync('/tmp/ready'), 4000); }, 1500); setInterval(() => undefined, 1e9);";
      const check = "process.exit(require('fs').existsSync('/tmp/ready') ? 0 : 1)";
      const readinessProbe = {
        exec: { command: [stage.nodePath, "-e", check] },
        periodSeconds: 1,
        failureThreshold: 1,
        timeoutSeconds: 5,
      };
      await create(stage, runningPod(stage, name, script, { terminationGracePeriodSeconds: 1 }, { readinessProbe }));
      const running = await stage.until("pods", name, (pod) => at(pod, "status", "phase") === "Running", "run");
      assert.ok(!isReady(running));
      await stage.until("pods", name, isReady, "be ready");
      await stage.until("pods", name, (pod) => !isReady(pod), "be unready again");
    },
  },
  {
    id: "node/restart",
    title:
      "a container that ends is started again in the same pod with a higher restartCount, and its last end is told",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      const script =
        "const fs = require('fs'); if (fs.existsSync('/shared/once')) setInterval(() => undefined, 1e9); else { fs.writeFileSync('/shared/once', ''); setTimeout(() => process.exit(7), 500); }";
      const volumes = [{ name: "shared", emptyDir: {} }];
      const volumeMounts = [{ name: "shared", mountPath: "/shared" }];
      await create(
        stage,
        runningPod(stage, name, script, { volumes, terminationGracePeriodSeconds: 1 }, { volumeMounts }),
      );
      const before = await stage.until("pods", name, (pod) => at(pod, "status", "phase") === "Running", "run");
      const after = await stage.until(
        "pods",
        name,
        (pod) => at(first(pod), "restartCount") === 1 && at(first(pod), "state", "running") !== undefined,
        "run again",
      );
      assert.equal(textAt(after, "metadata", "uid"), textAt(before, "metadata", "uid"));
      const last = at(first(after), "lastState", "terminated");
      stage.note("last state", pick(last, "exitCode", "reason"));
      assert.equal(at(last, "exitCode"), 7);
    },
  },
  {
    id: "node/killed",
    title: "a container that is killed comes back in the same pod; its last end tells 137",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      const script =
        "const fs = require('fs'); if (fs.existsSync('/shared/once')) setInterval(() => undefined, 1e9); else { fs.writeFileSync('/shared/once', ''); const { spawn } = require('child_process'); spawn('/bin/sh', ['-c', 'kill -9 ' + process.pid]); setInterval(() => undefined, 1e9); }";
      const spec = { volumes: [{ name: "shared", emptyDir: {} }], terminationGracePeriodSeconds: 1 };
      const volumeMounts = [{ name: "shared", mountPath: "/shared" }];
      await create(stage, runningPod(stage, name, script, spec, { volumeMounts }));
      const before = await stage.until("pods", name, (pod) => pod !== undefined, "exist");
      const after = await stage.until(
        "pods",
        name,
        (pod) => at(first(pod), "restartCount") === 1 && at(first(pod), "state", "running") !== undefined,
        "run again",
      );
      assert.equal(textAt(after, "metadata", "uid"), textAt(before, "metadata", "uid"));
      stage.note("last state", pick(at(first(after), "lastState", "terminated"), "exitCode", "reason"));
      assert.equal(at(first(after), "lastState", "terminated", "exitCode"), 137);
    },
  },
  {
    id: "node/never-restarts",
    title: "with restartPolicy Never a pod ends as Succeeded or Failed by its exit code",
    source,
    needs,
    run: async (stage) => {
      for (const [label, code, phase] of [
        ["good", 0, "Succeeded"],
        ["bad", 3, "Failed"],
      ] as const) {
        const name = stage.name(label);
        await create(
          stage,
          runningPod(stage, name, `setTimeout(() => process.exit(${code}), 200)`, { restartPolicy: "Never" }),
        );
        const pod = await stage.until("pods", name, (object) => at(object, "status", "phase") === phase, `be ${phase}`);
        const ended = at(first(pod), "state", "terminated");
        stage.note(label, { phase, ...pick(ended, "exitCode", "reason") });
        assert.equal(at(ended, "exitCode"), code);
      }
    },
  },
  {
    id: "node/deletion-grace",
    title: "a deleted pod is told to end, may use its grace, and its object goes only after its processes",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      const script =
        "process.on('SIGTERM', () => setTimeout(() => process.exit(0), 1500)); setInterval(() => undefined, 1e9);";
      const spec = { terminationGracePeriodSeconds: 20 };
      await create(stage, runningPod(stage, name, listening(script), spec, whenListening(stage)));
      await stage.until("pods", name, isReady, "be ready");
      const asked = performance.now();
      const answer = await stage.do("DELETE", stage.path("pods", name));
      assert.ok(isTerminating(answer));
      await stage.untilGone("pods", name);
      const took = performance.now() - asked;
      assert.ok(took >= 1_400 && took < 15_000, `${took} ms`);
    },
  },
  {
    id: "node/deletion-kill",
    title: "a pod that does not end within its grace is killed",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      const script = "process.on('SIGTERM', () => undefined); setInterval(() => undefined, 1e9);";
      const spec = { terminationGracePeriodSeconds: 2 };
      await create(stage, runningPod(stage, name, listening(script), spec, whenListening(stage)));
      await stage.until("pods", name, isReady, "be ready");
      const asked = performance.now();
      await stage.do("DELETE", stage.path("pods", name));
      await stage.untilGone("pods", name);
      const took = performance.now() - asked;
      assert.ok(took >= 1_900 && took < 20_000, `${took} ms`);
    },
  },
  {
    id: "node/image-error",
    title: "an image that cannot be had keeps the pod Pending and says why",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      await create(stage, runningPod(stage, name, "", {}, { image: "example.invalid/none:1" }));
      const pod = await stage.until(
        "pods",
        name,
        (object) => /ErrImagePull|ImagePullBackOff/.test(`${at(first(object), "state", "waiting", "reason")}`),
        "say ErrImagePull",
      );
      assert.equal(at(pod, "status", "phase"), "Pending");
    },
  },
  {
    id: "node/downward-api",
    title: "the downward API tells a container its pod's name, namespace, uid, address and node",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      const fields = ["metadata.name", "metadata.namespace", "metadata.uid", "status.podIP", "spec.nodeName"];
      const env = fields.map((fieldPath, index) => ({ name: `F${index}`, valueFrom: { fieldRef: { fieldPath } } }));
      // Its answer is its exit: 0 only if every field was told and the uid is one.
      const script = `const { F0, F1, F2, F3, F4 } = process.env; const good = F0 === '${name}' && F1 === '${stage.namespace}' && /^[0-9a-f-]{36}$/.test(F2) && /^[0-9.]+$/.test(F3) && F4; process.exit(good ? 0 : 9)`;
      await create(stage, runningPod(stage, name, script, { restartPolicy: "Never" }, { env }));
      const pod = await stage.until(
        "pods",
        name,
        (object) => /Succeeded|Failed/.test(`${at(object, "status", "phase")}`),
        "end",
      );
      assert.equal(at(pod, "status", "phase"), "Succeeded");
    },
  },
  {
    id: "node/claim-bound",
    title: "a claim that a pod uses is bound, and the pod runs with it",
    source,
    needs: both,
    run: async (stage) => {
      const play = playReal(stage, stays);
      await play.create();
      await play.untilPod(isReady, "be ready");
      const claim = await stage.until(
        "persistentvolumeclaims",
        play.claimName,
        (object) => at(object, "status", "phase") === "Bound",
        "be bound",
      );
      assert.ok(textAt(claim, "spec", "volumeName").length > 0);
      stage.note("claim", pick(at(claim, "status"), "phase", "accessModes", "capacity"));
    },
  },
  {
    id: "node/disk-survives",
    title: "what a pod wrote on its disk is there for the next pod: suspend and resume",
    source: fromController("3.3"),
    needs: both,
    run: async (stage) => {
      const script =
        "const fs = require('fs'); const f = '/workspace/kept'; const had = fs.existsSync(f); fs.writeFileSync(f, 'x'); if (had) fs.writeFileSync('/tmp/ready', ''); else fs.writeFileSync('/tmp/first', ''); process.on('SIGTERM', () => process.exit(0)); setInterval(() => undefined, 1e9);";
      const check = "process.exit(require('fs').existsSync('/tmp/ready') ? 0 : 1)";
      const container = {
        volumeMounts: [{ name: "workspace", mountPath: "/workspace" }],
        readinessProbe: { exec: { command: [stage.nodePath, "-e", check] }, periodSeconds: 1, timeoutSeconds: 5 },
        startupProbe: {
          exec: {
            command: [
              stage.nodePath,
              "-e",
              "const e = require('fs').existsSync; process.exit(e('/tmp/first') || e('/tmp/ready') ? 0 : 1)",
            ],
          },
          periodSeconds: 1,
          timeoutSeconds: 5,
          failureThreshold: 20,
        },
      };
      const play = playReal(stage, script, container);
      await play.create();
      const before = await play.untilPod((pod) => at(first(pod), "started") === true, "be started");
      assert.ok(!isReady(before));
      await play.setMode("Suspended");
      await stage.untilGone("pods", play.name);
      await play.untilReason("Suspended", "PodTerminated");
      await play.setMode("Running");
      const after = await play.untilPod(isReady, "find the first one's file");
      assert.notEqual(textAt(after, "metadata", "uid"), textAt(before, "metadata", "uid"));
      const sandbox = await play.untilReason("Ready", "DependenciesReady");
      assert.deepEqual(at(sandbox, "status", "podIPs"), [at(after, "status", "podIP")]);
    },
  },
  {
    id: "node/events",
    title: "what happens to a pod is told as events about it",
    source,
    needs,
    run: async (stage) => {
      const name = stage.name("pod");
      await create(stage, runningPod(stage, name, stays));
      await stage.until("pods", name, isReady, "be ready");
      const query = { fieldSelector: `involvedObject.name=${name}` };
      const reasons = async () => {
        const { body } = await stage.raw("GET", stage.path("events"), { query });
        return listAt(body, "items").map((event) => textAt(event, "reason"));
      };
      await stage.eventually("Scheduled and Started are told", async () => {
        const told = await reasons();
        return told.includes("Scheduled") && told.includes("Started");
      });
    },
  },
  {
    id: "node/whole-life",
    title: "a Sandbox whose pod really runs: ready, suspended, resumed, deleted with its disk",
    source: fromController("3.6"),
    needs: ["controller", "node", "gc", "claim-protection"],
    run: async (stage) => {
      const play = playReal(stage, stays);
      await play.create();
      const ready = await play.untilReason("Ready", "DependenciesReady");
      assert.equal(at(conditionIn(ready, "PodScheduled"), "status"), "True");
      await play.setMode("Suspended");
      await play.untilReason("Suspended", "PodTerminated");
      assert.equal(await play.pod(), undefined);
      await play.setMode("Running");
      await play.untilReason("Ready", "DependenciesReady");
      const body = { propagationPolicy: "Foreground" };
      await stage.do("DELETE", stage.path("sandboxes", play.name), { body });
      await stage.untilGone("sandboxes", play.name);
      assert.equal(await play.pod(), undefined);
      await stage.untilGone("persistentvolumeclaims", play.claimName);
    },
  },
];
