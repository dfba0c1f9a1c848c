import { podUidOf } from "@holdfast/contract";
import { openWish, patient, type Stage, settleTasks, stage, suspendWish, workspaceId } from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(() => {
  on = stage();
  workspace = new Workspace(id, on.deps);
});

/** Somebody takes the ownerReferences off the pod: the controller no longer knows it, and it runs on, on the disk. */
function strip(): void {
  const sandbox = on.cluster.stored(id);
  const [pod] = sandbox.pods;
  if (!pod) throw new Error("there is no pod");
  sandbox.pods.push({ ...pod, isStray: true });
  pod.uid = podUidOf("made-in-its-place");
}

describe("a pod that runs on the disk and is no longer owned by the Sandbox", () => {
  it("L25 keeps a suspend from being called suspended, and is named", async () => {
    await workspace.open(openWish, patient);
    strip();
    const suspending = workspace.suspend({ ...suspendWish, stopTimeoutMs: 60_000 }, patient);
    await expect(on.clock.runUntilSettled(suspending)).rejects.toMatchObject({
      reason: "SUSPEND_UNCONFIRMED",
      metadata: { pod: "namzu-ws-demo", sent: "true" },
    });
    expect(workspace.state.t).toBe("suspending");
    on.cluster.stored(id).pods = [];
    await workspace.suspend(suspendWish, patient);
    expect(workspace.state.t).toBe("suspended");
  });

  it("L15 is never bound, and L42 never deleted", async () => {
    on.cluster.seed(id);
    const sandbox = on.cluster.stored(id);
    sandbox.pods = sandbox.pods.map((pod) => ({ ...pod, isStray: true, phase: "Failed" }));
    on.cluster.habits.controller = false;
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 20_000 }, patient);
    const failed = expect(opening).rejects.toMatchObject({ reason: "START_TIMEOUT" });
    await settleTasks();
    await on.clock.runUntilSettled(failed);
    expect([on.guests.calls, on.cluster.plan.requests.filter((verb) => verb === "deletePod")]).toEqual([[], []]);
  });
});
