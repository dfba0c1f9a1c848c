import { describe, expect, it } from "vitest";
import { podJson, sandboxJson, uid } from "../testing/fixtures.ts";
import { podNewsOf, sandboxNewsOf } from "./cluster-news.ts";

const name = "namzu-ws-one";

describe("L37 what a watch says", () => {
  it("of a Sandbox: who it is, what is asked of it, and the stored epoch as it is", () => {
    const object = sandboxJson({ metadata: { deletionTimestamp: "2026-01-02T03:04:05Z" } });
    expect(sandboxNewsOf(name, object, "MODIFIED")).toEqual({
      t: "sandbox",
      name,
      uid,
      mode: "Running",
      deleting: true,
      holderEpoch: "3",
      happened: "modified",
    });
    expect(sandboxNewsOf(name, sandboxJson(), "ADDED")).toMatchObject({ happened: "added", deleting: false });
    expect(sandboxNewsOf(name, sandboxJson(), "DELETED")).toMatchObject({ happened: "gone" });
  });

  it("of a pod: under its owner's name, with the pod that it is about", () => {
    const news = podNewsOf(name, podJson({ metadata: { name: "pool-7", uid: "pod-uid" } }), "DELETED");
    expect(news).toMatchObject({ t: "pod", name, gone: true, pod: { uid: "pod-uid" } });
  });

  it("of a pod whose container waits: that it does not run yet", () => {
    const containers = [{ name: "main", image: "image" }];
    const waiting = [{ name: "main", state: { waiting: { reason: "ContainerCreating" } } }];
    const pod = {
      ...podJson(),
      spec: { containers, nodeName: "n" },
      status: { phase: "Pending", containerStatuses: waiting },
    };
    expect(podNewsOf(name, pod, "MODIFIED")).toMatchObject({ pod: { node: "n", phase: "Pending", waits: true } });
    const running = [{ name: "main", state: { running: {} } }];
    const later = { ...pod, status: { phase: "Running", containerStatuses: running } };
    expect(podNewsOf(name, later, "MODIFIED")).toMatchObject({ pod: { phase: "Running", waits: false } });
  });

  it("of what cannot be read: only that it changed", () => {
    expect(sandboxNewsOf(name, sandboxJson({ spec: { operatingMode: "Paused" } }), "MODIFIED")).toEqual({
      t: "changed",
      name,
    });
    expect(podNewsOf(name, { metadata: {} }, "ADDED")).toEqual({ t: "changed", name });
  });
});
