import {
  collect,
  executionWish,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "./workspace.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(() => {
  on = stage();
  workspace = new Workspace(id, on.deps);
});

describe("the whole path", () => {
  it("creates, runs, suspends, resumes and deletes with every state seen", async () => {
    const opened = await workspace.open(openWish, patient);
    expect(opened).toMatchObject({ state: "running", origin: "created", template: "small", root: "/workspace" });
    expect(opened.identity).toMatchObject({
      podUid: on.cluster.pods(id)[0]?.uid,
      claimUids: { "disk-namzu-ws-demo": expect.any(String) },
    });

    const events = await collect(workspace.execute(executionWish(), patient));
    expect(events.map(({ t }) => t)).toEqual(["started", "output", "exited"]);

    const suspended = await workspace.suspend(suspendWish, patient);
    expect(suspended.view.state).toBe("suspended");
    expect(suspended.flush.outcome).toBe("unsupported");
    expect(on.cluster.pods(id)).toEqual([]);

    const resumed = await workspace.resume({ readyTimeoutMs: 60_000 }, patient);
    expect(resumed).toMatchObject({ state: "running", origin: "resumed" });

    const destroyed = await workspace.destroy({ ...suspendWish, deleteDisk: true }, patient);
    expect(destroyed).toMatchObject({ view: undefined, flush: { outcome: "skipped" } });
    expect(workspace.state).toEqual({ t: "gone", why: "deleted" });
    expect(on.cluster.stands(id)).toBe(false);
    expect(on.cluster.plan.writes).toEqual(["createSandbox", "setMode", "setMode", "deleteSandbox"]);
  });

  it("leaves no timer and no subscription behind on an idle handle", async () => {
    await workspace.open(openWish, patient);
    await collect(workspace.execute(executionWish(), patient));
    await settleTasks();
    expect(on.clock.pending).toBe(0);
    expect(on.cluster.subscriptions).toBe(0);
  });
});
