import { describe, expect, it } from "vitest";
import type { KubeObject } from "../resource-api.ts";
import { PodReport } from "./pod-report.ts";
import { agentPod, conditionOf } from "./testing/cluster.ts";

const stored = (status: object, spec: object = {}): KubeObject => ({ ...agentPod("p", {}, spec), status });
const container = (more: object) => ({ phase: "Running", containerStatuses: [{ name: "agent", ...more }] });
const ended = (exitCode: number) => ({ terminated: { exitCode, reason: "Error" } });

describe("what a stored status tells after the node was away", () => {
  it.each([
    ["ran", { state: { running: { startedAt: "t" } }, restartCount: 2 }, 3],
    ["had ended", { state: ended(1), restartCount: 2 }, 3],
    [
      "waited to be started again",
      { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: ended(1), restartCount: 2 },
      3,
    ],
    [
      "was being started again",
      { state: { waiting: { reason: "ContainerCreating" } }, lastState: ended(1), restartCount: 2 },
      2,
    ],
    ["had not been started", { state: { waiting: { reason: "ContainerCreating" } }, restartCount: 0 }, 0],
  ])("a container that %s: its next start is number %j", (_, status, restartCount) => {
    const report = new PodReport(stored(container(status)), "127.1.1.1");
    expect(report.container("agent")).toMatchObject({
      restartCount,
      ready: false,
      state: { waiting: { reason: "ContainerCreating" } },
    });
  });

  it.each([
    ["Never", 1],
    ["Never", 0],
    ["OnFailure", 0],
  ])("of restartPolicy %s a container that ended with %d stays ended", (restartPolicy, code) => {
    const report = new PodReport(stored(container({ state: ended(code) }), { restartPolicy }), "127.1.1.1");
    expect(report.container("agent").state).toMatchObject(ended(code));
    expect(report.phase).toBe(code === 0 ? "Succeeded" : "Failed");
  });

  it("a pod that ended for good keeps its phase, its reason and its containers' ends", () => {
    const status = { ...container({ state: ended(1) }), phase: "Failed", reason: "Evicted", message: "why" };
    const report = new PodReport(stored(status), "127.1.1.1");
    expect(report.interrupted).toBe(false);
    expect(report.render()).toMatchObject({ phase: "Failed", reason: "Evicted", message: "why" });
  });
});

describe("a rendered status", () => {
  it("keeps the conditions that others set", () => {
    const pod = agentPod("p");
    const report = new PodReport(pod, "127.1.1.1");
    const condition = { type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "m" };
    report.observe({ ...pod, status: { conditions: [{ ...condition, lastTransitionTime: "t" }] } });
    const rendered = { ...pod, status: report.render() };
    expect(conditionOf(rendered, "DisruptionTarget")).toMatchObject(condition);
    expect(conditionOf(rendered, "Ready")).toMatchObject({ status: "False", reason: "ContainersNotReady" });
  });

  it("remembers since when a condition holds", () => {
    const pod = agentPod("p");
    const status = { conditions: [{ type: "Ready", status: "False", lastTransitionTime: "2020-01-01T00:00:00Z" }] };
    const rendered = { ...pod, status: new PodReport({ ...pod, status }, "127.1.1.1").render() };
    expect(conditionOf(rendered, "Ready").lastTransitionTime).toBe("2020-01-01T00:00:00Z");
  });
});
