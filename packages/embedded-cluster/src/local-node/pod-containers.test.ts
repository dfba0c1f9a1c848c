import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordOf } from "./json-shape.ts";
import {
  agentPod,
  awaitEvents,
  awaitGone,
  awaitPod,
  awaitReady,
  conditionOf,
  createPod,
  deletePod,
  evalIn,
  isReady,
  openTestCluster,
  standIn,
  statusOf,
  type TestCluster,
} from "./testing/cluster.ts";
import { processesWith } from "./testing/processes.ts";

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await openTestCluster({ backoff: { firstMs: 200, longestMs: 1_000 } });
});
afterAll(() => cluster.close());

const volumes = [{ name: "shared", emptyDir: { medium: "Memory" } }];
const volumeMounts = [{ name: "shared", mountPath: "/shared" }];
const shell = (name: string, line: string) => ({
  name,
  image: standIn.image,
  command: ["sh", "-c", line],
  volumeMounts,
});
const isWaitingFor = (container: string, reason: string) => (pod: Parameters<typeof statusOf>[0]) =>
  recordOf(recordOf(statusOf(pod, container).state).waiting).reason === reason;

describe("init containers", () => {
  it("run one after the other, each to its end, before the others", async () => {
    const initContainers = [
      shell("first", "echo first >>/shared/order; while ! test -e /shared/go; do sleep 0.05; done"),
      shell("second", "echo second >>/shared/order"),
    ];
    await createPod(cluster, agentPod("prepared", { volumeMounts }, { volumes, initContainers }));
    const waiting = await awaitPod(cluster, "prepared", (pod) => statusOf(pod, "first").started === true);
    expect(recordOf(waiting?.status).phase).toBe("Pending");
    expect(conditionOf(waiting, "Initialized")).toMatchObject({
      status: "False",
      reason: "ContainersNotInitialized",
      message: "containers with incomplete status: [first second]",
    });
    expect(
      isWaitingFor("second", "PodInitializing")(waiting) && isWaitingFor("agent", "PodInitializing")(waiting),
    ).toBe(true);
    await writeFile(`${cluster.dataDir}/pods/${waiting?.metadata.uid}/volumes/shared/go`, "");

    const pod = await awaitReady(cluster, "prepared");
    expect(await evalIn(pod, 'return fs.readFileSync("/shared/order", "utf8")')).toBe("first\nsecond\n");
    expect(statusOf(pod, "first").state).toMatchObject({ terminated: { exitCode: 0, reason: "Completed" } });
    expect(statusOf(pod, "first").ready).toBe(true);
    expect(conditionOf(pod, "Initialized").status).toBe("True");
    expect(conditionOf(pod, "PodReadyToStartContainers").status).toBe("True");
    await deletePod(cluster, pod);
    await awaitGone(cluster, "prepared");
  });

  it("are tried again when they fail, and the pod stays Pending", async () => {
    const initContainers = [
      shell("fails", "test -e /shared/twice && exit 0; touch /shared/once /shared/twice; exit 3"),
    ];
    const made = await createPod(cluster, agentPod("second-try", { volumeMounts }, { volumes, initContainers }));
    const pod = await awaitReady(cluster, "second-try");
    expect(statusOf(pod, "fails")).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 3, reason: "Error" } },
    });
    await deletePod(cluster, made);
    await awaitGone(cluster, "second-try");
  });

  it("fail a pod that is never restarted", async () => {
    const initContainers = [shell("fails", "exit 3")];
    const spec = { volumes, initContainers, restartPolicy: "Never" };
    const made = await createPod(cluster, agentPod("unprepared", { volumeMounts }, spec));
    const pod = await awaitPod(cluster, "unprepared", (it) => recordOf(it?.status).phase === "Failed");
    expect(isWaitingFor("agent", "PodInitializing")(pod)).toBe(true);
    await deletePod(cluster, made);
    await awaitGone(cluster, "unprepared");
  });
});

describe("several containers", () => {
  const second = (line: string) => ({ ...shell("second", line) });
  const twoOf = (name: string, line: string) => {
    const pod = agentPod(name, { volumeMounts }, { volumes });
    const spec = recordOf(pod.spec);
    return { ...pod, spec: { ...spec, containers: [...(spec.containers as object[]), second(line)] } };
  };

  it("share volumes and address, not processes; each is restarted alone; all end with the pod", async () => {
    const made = await createPod(cluster, twoOf("two", "echo hello >/shared/word; exec sleep 1000"));
    const pod = await awaitReady(cluster, "two");
    expect(await evalIn(pod, 'return fs.readFileSync("/shared/word", "utf8")')).toBe("hello\n");
    expect(await evalIn(pod, 'return sh("ps ax")')).not.toContain("sleep 1000");
    await evalIn(pod, "setImmediate(() => process.exit(3))");
    const again = await awaitPod(cluster, "two", (it) => isReady(it) && statusOf(it, "agent").restartCount === 1);
    expect(statusOf(again, "second")).toMatchObject({ restartCount: 0, ready: true });
    await deletePod(cluster, made);
    await awaitGone(cluster, "two");
    expect(processesWith(made.metadata.uid ?? "none")).toEqual([]);
  });

  it("make the pod ready only together, and name the one that is not", async () => {
    const made = await createPod(cluster, twoOf("half", "exit 1"));
    const pod = await awaitPod(cluster, "half", isWaitingFor("second", "CrashLoopBackOff"));
    await awaitPod(cluster, "half", (it) => statusOf(it, "agent").ready === true);
    expect(conditionOf(pod, "Ready")).toMatchObject({ status: "False", reason: "ContainersNotReady" });
    expect(String(conditionOf(pod, "ContainersReady").message)).toContain("second");
    expect(recordOf(pod?.status).phase).toBe("Running");
    await deletePod(cluster, made);
    await awaitGone(cluster, "half");
  });
});

describe("a pod's end", () => {
  it("begins with what the container wants done first, within its grace", async () => {
    const env = [{ name: "IGNORE_TERM", value: "1" }];
    const lifecycle = { preStop: { exec: { command: ["sh", "-c", "echo asked >/shared/stopped"] } } };
    const made = await createPod(cluster, agentPod("hooked", { env, volumeMounts, lifecycle }, { volumes }));
    const pod = await awaitReady(cluster, "hooked");
    const asked = evalIn(
      pod,
      'await new Promise((resolve) => process.once("SIGTERM", resolve)); return fs.readFileSync("/shared/stopped", "utf8")',
    );
    await evalIn(pod, "return 0"); // by now it listens for TERM
    await deletePod(cluster, made);
    expect(await asked).toBe("asked\n");
    await deletePod(cluster, made, { gracePeriodSeconds: 0 });
    await awaitGone(cluster, "hooked");
  });

  it("is not put off by a hook that takes longer than its grace", async () => {
    const lifecycle = { preStop: { sleep: { seconds: 600 } } };
    const made = await createPod(cluster, agentPod("slow-hook", { lifecycle }));
    await awaitReady(cluster, "slow-hook");
    const began = Date.now();
    await deletePod(cluster, made, { gracePeriodSeconds: 1 });
    await awaitGone(cluster, "slow-hook");
    expect(Date.now() - began).toBeLessThan(4_000);
  });
});

describe("events", () => {
  it("tell a pod's life as a scheduler and a kubelet do", async () => {
    const made = await createPod(cluster, agentPod("told"));
    const pod = await awaitReady(cluster, "told");
    await deletePod(cluster, pod);
    expect(await awaitEvents(cluster, made, "Killing")).toEqual([
      "Scheduled",
      "Pulled",
      "Created",
      "Started",
      "Killing",
    ]);
  });
});

describe("a startup probe", () => {
  it("that fails to the end has the container restarted, and only then are the others asked", async () => {
    const startupProbe = {
      exec: { command: ["test", "-e", "/shared/started"] },
      periodSeconds: 1,
      failureThreshold: 1,
      terminationGracePeriodSeconds: 1,
    };
    const livenessProbe = {
      exec: { command: ["false"] },
      periodSeconds: 1,
      failureThreshold: 1,
      initialDelaySeconds: 1,
    };
    const env = [{ name: "IGNORE_TERM", value: "1" }];
    const spec = { volumes, terminationGracePeriodSeconds: 600 };
    const container = { env, volumeMounts, startupProbe, livenessProbe };
    const made = await createPod(cluster, agentPod("never-up", container, spec));
    // The probe's own grace of a second, not the pod's ten minutes.
    const pod = await awaitPod(cluster, "never-up", (it) => statusOf(it, "agent").restartCount === 1);
    expect(statusOf(pod, "agent")).toMatchObject({ lastState: { terminated: { exitCode: 137 } } });
    expect(statusOf(pod, "agent").started).toBe(false);
    expect(await awaitEvents(cluster, made, "Killing")).toContain("Unhealthy");
    await deletePod(cluster, made, { gracePeriodSeconds: 0 });
    await awaitGone(cluster, "never-up");
  });
});
