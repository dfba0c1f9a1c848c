import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordOf } from "./json-shape.ts";
import { isolationAnnotation, relaxationsAnnotation } from "./node-object.ts";
import { nodes } from "./resources.ts";
import {
  agentPod,
  awaitGone,
  awaitPod,
  awaitReady,
  containerOf,
  createPod,
  deletePod,
  evalIn,
  ipOf,
  isReady,
  openTestCluster,
  type TestCluster,
} from "./testing/cluster.ts";
import { processesWith } from "./testing/processes.ts";

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await openTestCluster();
});
afterAll(() => cluster.close());

describe("the node", () => {
  it("says on its object how pods are isolated and what it relaxes", async () => {
    const node = await cluster.api.get({ resource: nodes, namespace: "", name: cluster.node.name });
    expect(node.metadata.annotations).toMatchObject({
      [isolationAnnotation]: cluster.node.isolation,
      [relaxationsAnnotation]: cluster.node.relaxations.join("\n"),
    });
    expect(recordOf(node.status).conditions).toContainEqual(expect.objectContaining({ type: "Ready", status: "True" }));
  });
});

describe("a pod's variables", () => {
  it("are literal values, the downward API and references to earlier ones", async () => {
    const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
    const env = [
      { name: "HTTP_PROXY", value: 'it\'s "quoted" $(HOME)\nand $$(HOME) and $(NOT_SET)' },
      { name: "dotted.name-1", value: "x" },
      field("NAME", "metadata.name"),
      field("NAMESPACE", "metadata.namespace"),
      field("UID", "metadata.uid"),
      field("LABEL", "metadata.labels['app.kubernetes.io/name']"),
      field("ANNOTATION", "metadata.annotations['note']"),
      field("NODE", "spec.nodeName"),
      field("HOST", "status.hostIP"),
    ];
    const metadata = { labels: { "app.kubernetes.io/name": "thing" }, annotations: { note: "two words" } };
    const made = await createPod(cluster, agentPod("variables", { env }, {}, metadata));
    const pod = await awaitReady(cluster, "variables");
    expect(await evalIn(pod, "return process.env")).toEqual({
      PATH: expect.any(String),
      HOME: "/home/agent",
      HOSTNAME: "variables",
      HOLDFAST_AGENT_HOST: ipOf(pod),
      HOLDFAST_AGENT_TOKEN: made.metadata.uid,
      HTTP_PROXY: 'it\'s "quoted" /home/agent\nand $(HOME) and $(NOT_SET)',
      "dotted.name-1": "x",
      NAME: "variables",
      NAMESPACE: "default",
      UID: made.metadata.uid,
      LABEL: "thing",
      ANNOTATION: "two words",
      NODE: cluster.node.name,
      HOST: expect.stringMatching(/^127\.\d+\.\d+\.1$/),
    });
    await deletePod(cluster, pod);
  });
});

describe("an agent that ends", () => {
  it("is started again in the same pod with a higher restartCount, and nothing of the first run is left", async () => {
    const made = await createPod(cluster, agentPod("crashing"));
    const first = await awaitReady(cluster, "crashing");
    await evalIn(first, 'sh("sleep 1000 >/dev/null 2>&1 &"); fs.writeFileSync("/tmp/scratch", "x"); return 1');
    await evalIn(first, "setImmediate(() => process.exit(3))");
    const second = await awaitPod(cluster, "crashing", (pod) => isReady(pod) && containerOf(pod).restartCount === 1);
    expect(second?.metadata.uid).toBe(made.metadata.uid);
    expect(containerOf(second)).toMatchObject({ running: true, lastTerminated: { exitCode: 3, reason: "Error" } });
    expect(second && (await evalIn(second, 'return [sh("ps ax"), fs.existsSync("/tmp/scratch")]'))).toEqual([
      expect.not.stringContaining("sleep"),
      false,
    ]);
    await deletePod(cluster, made);
  });

  it("waits longer after each further failure, and says so", async () => {
    const made = await createPod(cluster, agentPod("looping", { command: ["sh", "-c", "exit 7"] }));
    const pod = await awaitPod(cluster, "looping", (it) => containerOf(it).waitingFor === "CrashLoopBackOff");
    expect(containerOf(pod)).toMatchObject({ restartCount: 1, lastTerminated: { exitCode: 7 } });
    expect(containerOf(pod).waitingMessage).toContain("back-off 10s");
    expect(isReady(pod)).toBe(false);
    await deletePod(cluster, made);
    await awaitGone(cluster, "looping");
  });

  it.each([
    ["Never", "exit 0", "Succeeded"],
    ["Never", "exit 4", "Failed"],
    ["OnFailure", "exit 0", "Succeeded"],
  ])("ends the pod where restartPolicy is %s and it does `%s`: %s", async (restartPolicy, line, phase) => {
    const name = `${restartPolicy}-${phase}`.toLowerCase();
    const made = await createPod(cluster, agentPod(name, { command: ["sh", "-c", line] }, { restartPolicy }));
    const pod = await awaitPod(cluster, name, (it) => recordOf(it?.status).phase === phase);
    expect(containerOf(pod)).toMatchObject({ restartCount: 0, running: false });
    await deletePod(cluster, made);
    await awaitGone(cluster, name);
  });
});

describe("a pod that this node cannot run", () => {
  it("with another image is never started: ErrImagePull, phase Pending", async () => {
    const made = await createPod(cluster, agentPod("stranger", { image: "nginx:latest" }));
    const pod = await awaitPod(cluster, "stranger", (it) => containerOf(it).waitingFor === "ErrImagePull");
    expect(recordOf(pod?.status).phase).toBe("Pending");
    await deletePod(cluster, made);
    await awaitGone(cluster, "stranger");
  });

  it("fails with the name of the member that is not supported", async () => {
    const made = await createPod(cluster, agentPod("odd", {}, { volumes: [{ name: "x", hostPath: { path: "/" } }] }));
    const pod = await awaitPod(cluster, "odd", (it) => recordOf(it?.status).phase === "Failed");
    expect(recordOf(pod?.status).message).toContain("volume x");
    await deletePod(cluster, made);
    await awaitGone(cluster, "odd");
  });
});

describe("deletion", () => {
  it("asks first, and the object goes only when no process is left", async () => {
    const made = await createPod(cluster, agentPod("polite"));
    const pod = await awaitReady(cluster, "polite");
    await evalIn(pod, 'sh("sleep 1000 >/dev/null 2>&1 &")');
    const uid = made.metadata.uid ?? "none";
    expect(processesWith(uid).length).toBeGreaterThan(2);
    const began = Date.now();
    await deletePod(cluster, pod);
    await awaitGone(cluster, "polite");
    expect(processesWith(uid)).toEqual([]);
    expect(Date.now() - began).toBeLessThan(4_000); // it obeyed TERM: the grace of 5 s was not used up
    expect(existsSync(`${cluster.dataDir}/pods/${uid}`)).toBe(false);
  });

  it("kills one that ignores TERM after its grace and not before", async () => {
    await createPod(cluster, agentPod("stubborn", { env: [{ name: "IGNORE_TERM", value: "1" }] }));
    const pod = await awaitReady(cluster, "stubborn");
    const began = Date.now();
    await deletePod(cluster, pod, { gracePeriodSeconds: 1 });
    const leaving = await awaitPod(cluster, "stubborn", (it) => it?.metadata.deletionTimestamp !== undefined);
    expect(isReady(leaving)).toBe(true); // as with a kubelet: until the process stops
    await awaitGone(cluster, "stubborn");
    expect(Date.now() - began).toBeGreaterThanOrEqual(1_000);
    expect(Date.now() - began).toBeLessThan(4_000);
    expect(processesWith(pod.metadata.uid ?? "none")).toEqual([]);
  });

  it("B56 gives a grace of thirty days its time", async () => {
    const env = [{ name: "IGNORE_TERM", value: "1" }];
    await createPod(cluster, agentPod("patient", { env }, { terminationGracePeriodSeconds: 2_592_000 }));
    const pod = await awaitReady(cluster, "patient");
    const asked = evalIn(pod, 'await new Promise((resolve) => process.once("SIGTERM", resolve)); return "asked"');
    await evalIn(pod, "return 0"); // By now it listens for TERM.
    await deletePod(cluster, pod);
    expect(await asked).toBe("asked");
    for (let at = 0; at < 20; at += 1) expect(await evalIn(pod, "return 1")).toBe(1);
    await deletePod(cluster, pod, { gracePeriodSeconds: 0 });
    await awaitGone(cluster, "patient");
  });

  it("by force kills the processes although the object is gone at once", async () => {
    await createPod(cluster, agentPod("forced", { env: [{ name: "IGNORE_TERM", value: "1" }] }));
    const pod = await awaitReady(cluster, "forced");
    await deletePod(cluster, pod, { gracePeriodSeconds: 0 });
    // The next pod of the name, on the same node, is another one.
    await createPod(cluster, agentPod("forced"));
    const next = await awaitReady(cluster, "forced");
    expect(next.metadata.uid).not.toBe(pod.metadata.uid);
    expect(processesWith(pod.metadata.uid ?? "none")).toEqual([]);
    await deletePod(cluster, next);
    await awaitGone(cluster, "forced");
  });
});

describe.concurrent("probes", () => {
  it("run commands inside the pod, as its user, with its variables", async () => {
    const line =
      'test "$(id -u)" = 1001 && test -n "$HOLDFAST_AGENT_TOKEN" && grep -q "NoNewPrivs.*1" /proc/self/status && test -e /tmp/up';
    const readinessProbe = { exec: { command: ["sh", "-c", line] }, periodSeconds: 1 };
    const command = ["sh", "-c", "touch /tmp/up; exec sleep 1000"];
    const made = await createPod(cluster, agentPod("exec-probe", { readinessProbe, command }));
    await awaitReady(cluster, "exec-probe");
    await deletePod(cluster, made, { gracePeriodSeconds: 1 });
    await awaitGone(cluster, "exec-probe");
  });

  it("take an HTTP answer below 400 for success", async () => {
    const readinessProbe = { httpGet: { port: 1024, path: "/" }, periodSeconds: 1 };
    const made = await createPod(cluster, agentPod("http-probe", { readinessProbe }));
    await awaitReady(cluster, "http-probe");
    await deletePod(cluster, made);
    await awaitGone(cluster, "http-probe");
  });

  it("take readiness away after failureThreshold failures and give it back", async () => {
    const command = ["sh", "-c", "test -e $HOME/listening && ! test -e /tmp/down"];
    const readinessProbe = { exec: { command }, periodSeconds: 1, failureThreshold: 2 };
    const made = await createPod(cluster, agentPod("flapping", { readinessProbe }));
    const pod = await awaitReady(cluster, "flapping");
    await evalIn(pod, 'fs.writeFileSync("/tmp/down", "")');
    const down = await awaitPod(cluster, "flapping", (it) => it !== undefined && !isReady(it));
    expect(containerOf(down)).toMatchObject({ restartCount: 0, running: true });
    if (down !== undefined) await evalIn(down, 'fs.rmSync("/tmp/down")');
    await awaitReady(cluster, "flapping");
    await deletePod(cluster, made);
    await awaitGone(cluster, "flapping");
  });

  it("restart a container whose liveness fails, in the same pod", async () => {
    const livenessProbe = {
      exec: { command: ["test", "!", "-e", "/tmp/dead"] },
      periodSeconds: 1,
      failureThreshold: 1,
    };
    const made = await createPod(cluster, agentPod("wedged", { livenessProbe }));
    const pod = await awaitReady(cluster, "wedged");
    await evalIn(pod, 'fs.writeFileSync("/tmp/dead", "")');
    const again = await awaitPod(cluster, "wedged", (it) => isReady(it) && containerOf(it).restartCount === 1);
    expect(again?.metadata.uid).toBe(made.metadata.uid);
    await deletePod(cluster, made);
    // The restart's deadline is not the deletion's: the agent is asked, and ends by itself.
    const leaving = await awaitPod(cluster, "wedged", (it) => "exitCode" in containerOf(it).terminated);
    expect(containerOf(leaving).terminated).toMatchObject({ exitCode: 0 });
    await awaitGone(cluster, "wedged");
  });
});
