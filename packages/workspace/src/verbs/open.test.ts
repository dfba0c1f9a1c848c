import { sandboxUidOf } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  openWish,
  patient,
  type Stage,
  settleTasks,
  silence,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { GuestNotReached } from "../ports/guest.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(() => {
  on = stage();
  workspace = new Workspace(id, on.deps);
});

const writes = () => on.cluster.plan.writes;

describe("open creates", () => {
  it("L7 refuses a template without a usable disk before anything is sent", async () => {
    on.cluster.addTemplate("bare", { usable: false, why: "it has no volumeClaimTemplates", claims: [] });
    await expect(workspace.open({ ...openWish, template: "bare" }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_DISK_UNUSABLE",
      metadata: { source: "SandboxTemplate", name: "bare", operation: "OpenWorkspace", workspace_id: "demo" },
    });
    expect(writes()).toEqual([]);
    expect(workspace.state).toEqual({ t: "gone", why: "start_failed" });
  });

  it("L7 refuses a template that does not exist, and a call that names none where no default is configured", async () => {
    await expect(workspace.open({ ...openWish, template: "nope" }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_FOUND",
    });
    const bare = stage({ defaultTemplate: undefined });
    await expect(new Workspace(id, bare.deps).open(openWish, patient)).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "template" }],
    });
    expect([...writes(), ...bare.cluster.plan.writes]).toEqual([]);
  });

  it("refuses to create, adopt or wake while ingress is to be verified, with no request at all", async () => {
    const strict = stage({ ingress: "verify" });
    strict.cluster.seed(id, { mode: "Suspended" });
    for (const call of [
      (it: Workspace) => it.open(openWish, patient),
      (it: Workspace) => it.adopt(patient),
      (it: Workspace) => it.resume({ readyTimeoutMs: 1_000 }, patient),
    ]) {
      await expect(call(new Workspace(id, strict.deps))).rejects.toMatchObject({ reason: "INGRESS_UNVERIFIED" });
    }
    expect(strict.cluster.plan.requests).toEqual([]);
  });

  it("L8 MUST_EXIST and expected_sandbox_uid never create", async () => {
    await expect(workspace.open({ ...openWish, create: "must_exist" }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_FOUND",
    });
    const expecting = { ...openWish, expectedSandboxUid: sandboxUidOf("sandbox-99") };
    await expect(new Workspace(id, on.deps).open(expecting, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_FOUND",
    });
    expect(writes()).toEqual([]);
  });

  it("L17 probes the guest before anything else is asked of it", async () => {
    await workspace.open(openWish, patient);
    expect(on.guests.calls.map(({ verb }) => verb)).toEqual(["probe", "health"]);
  });

  it("L14 takes what stands as its own only when its own created-by is read back", async () => {
    on.cluster.plan.fail("createSandbox", "reply-lost");
    const view = await workspace.open({ ...openWish, create: "must_create" }, patient);
    expect(view.origin).toBe("created");
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("L14 repeats the POST, with the same marks, where nothing stands", async () => {
    on.cluster.plan.fail("createSandbox", "never-arrived");
    const view = await on.clock.runUntilSettled(workspace.open(openWish, patient));
    expect(view.origin).toBe("created");
    const marks = on.cluster.sent.map((wish) => "createdBy" in wish && [wish.createdBy, wish.writtenBy]);
    expect(marks).toHaveLength(2);
    expect(marks[0]).toEqual(marks[1]);
  });

  it("L14 counts a POST that arrived late, just before its repeat, as its own", async () => {
    on.cluster.plan.fail("createSandbox", "late");
    const opening = workspace.open({ ...openWish, create: "must_create" }, patient);
    await settleTasks();
    expect(on.cluster.deliverLate()).toEqual(["applied"]);
    expect((await on.clock.runUntilSettled(opening)).origin).toBe("created");
  });

  it("L14 adopts what somebody else created while the POST was unanswered", async () => {
    on.cluster.plan.fail("createSandbox", "never-arrived");
    const opening = workspace.open(openWish, patient);
    await settleTasks();
    on.cluster.seed(id, { stamps: { createdBy: "somebody" } });
    expect((await on.clock.runUntilSettled(opening)).origin).toBe("adopted_running");
  });

  it("L14 suspends a POST that landed after its Open had failed, at the end of the window, if nobody can use it", async () => {
    on.cluster.habits.podsStart = false;
    on.cluster.plan.fail("createSandbox", "late");
    const cut = on.cluster.plan.hold("createSandbox");
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 5_000 }, patient);
    await cut.reached;
    on.cluster.plan.fail("readSandbox", "stall");
    cut.release();
    await expect(on.clock.runUntilSettled(opening, 60_000)).rejects.toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
      metadata: { created_by: expect.stringMatching(/^mark-/) },
    });
    expect(workspace.state.t).toBe("gone");
    expect(on.cluster.deliverLate()).toEqual(["applied"]);
    expect(on.cluster.stored(id).mode).toBe("Running");
    await on.clock.advance(120_000);
    expect(on.cluster.stored(id).mode).toBe("Suspended");
    expect(writes()).toEqual(["createSandbox", "setMode"]);
    expect(on.clock.pending).toBe(0);
  });

  it("gives up the look for a lost POST that never lands, and leaves nothing running", async () => {
    on.cluster.plan.fail("createSandbox", "never-arrived");
    const cut = on.cluster.plan.hold("createSandbox");
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 5_000 }, patient);
    await cut.reached;
    on.cluster.plan.fail("readSandbox", "stall");
    cut.release();
    await expect(on.clock.runUntilSettled(opening, 60_000)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    await on.clock.advance(120_000);
    expect(on.clock.pending).toBe(0);
    expect(on.cluster.subscriptions).toBe(0);
    expect(writes()).toEqual(["createSandbox"]);
  });
});

describe("open adopts", () => {
  it("L12 a Running workspace is not patched", async () => {
    on.cluster.seed(id);
    expect((await workspace.open(openWish, patient)).origin).toBe("adopted_running");
    expect(writes()).toEqual([]);
  });

  it("L9 a second Open is ALREADY_OPEN, and checks the same", async () => {
    await workspace.open(openWish, patient);
    expect((await workspace.open(openWish, patient)).origin).toBe("already_open");
    expect(workspace.view().origin).toBe("created");
    await expect(workspace.open({ ...openWish, template: "big" }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_MISMATCH",
      metadata: { field: "template", expected: "big", actual: "small" },
    });
    await expect(workspace.open({ ...openWish, create: "must_create" }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_EXISTS",
    });
    expect(workspace.state.t).toBe("active");
    expect(on.guests.count("probe")).toBe(1);
  });

  it.each([
    ["a template other than asked for", { template: "big" }, {}, "WORKSPACE_MISMATCH", { actual: "big" }],
    ["no template label", { template: undefined }, {}, "WORKSPACE_MISMATCH", { actual: "" }],
    [
      "no RuntimeClass where one is configured",
      {},
      { runtimeClassName: "kata" },
      "WORKSPACE_MISMATCH",
      { field: "runtimeClassName" },
    ],
    [
      "an unusable disk",
      { disk: { usable: false, why: "none", claims: ["disk"] } },
      {},
      "WORKSPACE_DISK_UNUSABLE",
      { source: "Sandbox" },
    ],
    ["a deletionTimestamp", { deleting: true }, {}, "WORKSPACE_DELETING", {}],
  ] as const)(
    "L11 refuses one with %s: it stays asleep and its guest is not dialled",
    async (_, seed, policy, reason, metadata) => {
      on = stage(policy);
      workspace = new Workspace(id, on.deps);
      on.cluster.seed(id, { mode: "Suspended", ...seed });
      const opening = workspace.open({ ...openWish, template: "small" }, patient);
      await expect(opening).rejects.toMatchObject({ reason, metadata });
      expect(writes()).toEqual([]);
      expect(on.guests.calls).toEqual([]);
      expect(workspace.state.t).toBe("gone");
    },
  );

  it("of an open workspace that is being deleted says so, and so does the handle from then on", async () => {
    await workspace.open(openWish, patient);
    on.cluster.stored(id).deleting = true;
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    expect(workspace.state.t).toBe("deleting");
  });

  it("L8 MUST_CREATE never adopts, and another uid than expected is WORKSPACE_REPLACED", async () => {
    const standing = on.cluster.seed(id, { mode: "Suspended" });
    await expect(workspace.open({ ...openWish, create: "must_create" }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_EXISTS",
    });
    const expecting = { ...openWish, expectedSandboxUid: sandboxUidOf("sandbox-99") };
    await expect(new Workspace(id, on.deps).open(expecting, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_REPLACED",
      metadata: { expected: "sandbox-99", actual: standing.uid },
    });
    expect(writes()).toEqual([]);
  });

  it("reports a workspace that may delete its disk by itself", async () => {
    on.cluster.seed(id, { shutdown: { time: "2027-01-01T00:00:00Z", policy: "Delete" } });
    await workspace.open(openWish, patient);
    expect(on.logged).toContainEqual(
      expect.objectContaining({ level: "warn", message: expect.stringContaining("shutdownTime") }),
    );
  });

  it("L12 wakes only once the old pod carries a deletionTimestamp, and binds only the new one", async () => {
    on.cluster.seed(id);
    const old = on.cluster.pods(id)[0];
    on.cluster.habits.controller = false;
    on.cluster.foreignMode(id, "Suspended");
    const opening = workspace.open(openWish, patient);
    await settleTasks();
    expect(writes()).toEqual([]); // The controller has not seen the suspend: the old pod would be kept for ever.
    on.cluster.habits.podsEnd = false;
    on.cluster.observe(id);
    await settleTasks();
    expect(writes()).toEqual(["setMode"]);
    on.cluster.habits.controller = true;
    on.cluster.endPods(id);
    expect(await opening).toMatchObject({ origin: "resumed" });
    expect(on.guests.calls.some(({ pod }) => pod === old?.uid)).toBe(false);
  });

  it("L13 waits through the drain of a Running workspace whose pod is dying, with no patch", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    for (const pod of on.cluster.pods(id)) (pod as { deleting: boolean }).deleting = true;
    const opening = workspace.open(openWish, patient);
    await settleTasks();
    expect(on.guests.calls).toEqual([]);
    on.cluster.endPods(id);
    expect((await opening).origin).toBe("adopted_running");
    expect(writes()).toEqual([]);
  });

  it("L13 fails before any patch when the pods of a sleeping workspace cannot be read", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    on.cluster.plan.fail("readPods", "unavailable");
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect(writes()).toEqual([]);
  });

  it("tolerates failing reads after the patch, until its deadline", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    const patch = on.cluster.plan.hold("setMode");
    const opening = workspace.open(openWish, patient);
    await patch.reached;
    on.cluster.plan.fail("readSandbox", "unavailable");
    on.cluster.plan.fail("readPods", "unavailable", "unavailable");
    patch.release();
    expect((await on.clock.runUntilSettled(opening)).origin).toBe("resumed");
  });

  it("L31 losing the race to another's resume is an outcome: what stands is bound, nothing is stamped", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    const patch = on.cluster.plan.hold("setMode");
    const opening = workspace.open(openWish, patient);
    await patch.reached;
    on.cluster.foreignMode(id, "Running");
    patch.release();
    expect((await on.clock.runUntilSettled(opening)).origin).toBe("adopted_running");
    expect(on.cluster.stored(id).stamps.writtenBy).toMatch(/^foreign/);
  });

  it("L16 refuses a disk that was replaced by an empty one, before waking", async () => {
    on.cluster.seed(id, { mode: "Suspended", stamps: { volumeClaimUids: "disk-namzu-ws-demo=claim-of-old" } });
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_REPLACED",
      metadata: { field: "claim_uid", expected: "claim-of-old" },
    });
    expect(writes()).toEqual([]);
  });
});

describe("L18 a start that runs out of time says which problem it was", () => {
  const cases = [
    ["no_pod", { controller: false }, undefined],
    ["never_ready", { podsStart: false }, undefined],
    ["no_address", { podsStart: false }, { phase: "Running", problem: "crash loop: x" }],
    ["unschedulable", { podsStart: false }, { problem: "unschedulable: no node fits" }],
    ["image_pull", { podsStart: false }, { problem: "image pull: not found" }],
    ["crash_loop", { podsStart: false }, { problem: "crash loop: exit 1" }],
    ["out_of_memory", { podsStart: false }, { problem: "out of memory" }],
  ] as const;

  it.each(cases)("%s", async (problem, habits, pod) => {
    Object.assign(on.cluster.habits, habits);
    const opening = workspace.open({ ...openWish, onStartFailure: "leave", readyTimeoutMs: 60_000 }, patient);
    await settleTasks();
    for (const standing of on.cluster.pods(id)) Object.assign(standing, pod ?? {});
    await expect(on.clock.runUntilSettled(opening, 60_000)).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { problem, budget_ms: "60000" },
    });
  });

  it("adopted_while_terminating", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    for (const pod of on.cluster.pods(id)) Object.assign(pod, { deleting: true });
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 60_000 }, patient);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      metadata: { problem: "adopted_while_terminating", pod: "namzu-ws-demo" },
    });
  });

  it("only_pod_being_left", async () => {
    on.cluster.seed(id);
    on.cluster.habits.controller = false;
    on.cluster.foreignMode(id, "Suspended");
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 60_000 }, patient);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { problem: "only_pod_being_left" },
    });
    expect(writes()).toEqual([]);
  });

  it("agent_unreachable, and leaves the workspace running: somebody else may be using it", async () => {
    on.guests.shape = (agent) => {
      agent.unreached = "no-connection";
    };
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 60_000 }, patient);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { problem: "agent_unreachable", on_start_failure: "left_running" },
      cause: expect.any(GuestNotReached),
    });
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("an error other than the deadline travels out unchanged", async () => {
    on.cluster.seed(id);
    on.cluster.plan.fail("readPods", "forbidden");
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject({ reason: "CLUSTER_FORBIDDEN" });
  });
});

describe("L19 a failed start", () => {
  it("suspends again what this call created, and deletes nothing", async () => {
    on.cluster.habits.podsStart = false;
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 60_000 }, patient);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { on_start_failure: "suspended" },
    });
    expect(writes()).toEqual(["createSandbox", "setMode"]);
    expect(on.cluster.stored(id).mode).toBe("Suspended");
    expect(workspace.state).toEqual({ t: "gone", why: "start_failed" });
  });

  it("suspends again what it woke when the guest is privileged", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    on.guests.shape = (agent) => {
      agent.probe = async () => "CapInh:\t1";
    };
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject({ reason: "GUEST_PRIVILEGED" });
    expect(on.cluster.sent.map((wish) => "mode" in wish && wish.mode)).toEqual(["Running", "Suspended"]);
    expect(on.guests.count("health")).toBe(0);
  });

  it.each(["created", "woken"])("leaves what it %s under LEAVE", async (how) => {
    if (how === "woken") on.cluster.seed(id, { mode: "Suspended" });
    on.cluster.habits.podsStart = false;
    const opening = workspace.open({ ...openWish, onStartFailure: "leave", readyTimeoutMs: 60_000 }, patient);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      metadata: { on_start_failure: "left_running" },
    });
    expect(writes()).toHaveLength(1);
    expect(on.cluster.stored(id).mode).toBe("Running");
  });

  it("sends nothing about a workspace that it did not wake", async () => {
    on.cluster.seed(id);
    on.guests.shape = (agent) => {
      agent.probe = async () => "";
    };
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject({
      reason: "GUEST_PRIVILEGED",
      metadata: { seen: "unreadable: no CapInh" },
    });
    expect(writes()).toEqual([]);
  });

  it("sends nothing when somebody wrote since: its own written-by is tested", async () => {
    on.cluster.habits.podsStart = false;
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 60_000 }, patient);
    await settleTasks();
    on.cluster.stored(id).stamps.writtenBy = "somebody";
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      metadata: { on_start_failure: "left_running" },
    });
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("does not say that it left running what somebody else suspended", async () => {
    on.cluster.habits.podsStart = false;
    const opening = workspace.open(openWish, patient);
    await settleTasks();
    on.cluster.foreignMode(id, "Suspended");
    await expect(opening).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { on_start_failure: "left_as_found" },
    });
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("sends nothing when the pod is bindable by then", async () => {
    on.cluster.habits.podsStart = false;
    const caller = new AbortController();
    const opening = workspace.open(openWish, caller.signal);
    await settleTasks();
    for (const pod of on.cluster.pods(id)) Object.assign(pod, { ready: true, ip: "10.9.9.9", phase: "Running" });
    const reason = new Error("the caller went away");
    caller.abort(reason);
    await expect(opening).rejects.toBe(reason);
    await settleTasks();
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("gives a caller that goes away its own reason, and suspends what was woken for it", async () => {
    on.cluster.habits.podsStart = false;
    const caller = new AbortController();
    const opening = workspace.open(openWish, caller.signal);
    await settleTasks();
    const reason = new Error("the caller went away");
    caller.abort(reason);
    await expect(opening).rejects.toBe(reason);
    await settleTasks();
    expect(writes()).toEqual(["createSandbox", "setMode"]);
  });

  it("lets a caller's end not cut a write: its ending is known", async () => {
    const post = on.cluster.plan.hold("createSandbox");
    const caller = new AbortController();
    const opening = workspace.open(openWish, caller.signal);
    await post.reached;
    caller.abort(new Error("the caller went away"));
    await expect(opening).rejects.toThrow("went away");
    post.release();
    await settleTasks();
    expect(workspace.state.t).toBe("gone");
    expect(workspace.hasUnresolvedWrite).toBe(false);
  });

  it("G32 refuses a guest that turns the probe away, and leaves it: that it is privileged is not proved", async () => {
    on.guests.shape = (agent) => {
      agent.probe = async () => {
        throw new HoldfastError("EXECUTION_CAPACITY", { message: "all places are taken" });
      };
    };
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject({
      reason: "GUEST_PRIVILEGED",
      metadata: { seen: "the probe was refused: all places are taken", on_start_failure: "left_running" },
    });
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("G32 refuses a guest that accepts and never answers the probe, and leaves it: it may serve somebody else", async () => {
    on.guests.shape = (agent) => {
      agent.probe = silence;
    };
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 60_000 }, patient);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      reason: "GUEST_PRIVILEGED",
      metadata: { seen: "unanswered", on_start_failure: "left_running" },
    });
  });

  it("G32 only reports a privileged guest where the operator says so", async () => {
    on = stage({ probe: "report" });
    on.guests.shape = (agent) => {
      agent.probe = async () => "CapInh:\t1";
    };
    expect((await new Workspace(id, on.deps).open(openWish, patient)).state).toBe("running");
    expect(on.logged).toContainEqual(expect.objectContaining({ level: "warn" }));
  });

  it("gives up at once on what waiting does not cure", async () => {
    for (const [why, reason] of [
      ["protocol-mismatch", "GUEST_PROTOCOL_MISMATCH"],
      ["name-unresolvable", "AGENT_ADDRESS_UNRESOLVABLE"],
    ] as const) {
      const other = stage();
      other.cluster.seed(id);
      other.guests.shape = (agent) => {
        agent.unreached = why;
      };
      await expect(new Workspace(id, other.deps).open(openWish, patient)).rejects.toMatchObject({ reason });
    }
  });

  it("reads a refused token twice from fresh pods before it is GUEST_TOKEN_REFUSED", async () => {
    on.cluster.seed(id);
    on.guests.shape = (agent) => {
      agent.unreached = "token-refused";
    };
    await expect(on.clock.runUntilSettled(workspace.open(openWish, patient))).rejects.toMatchObject({
      reason: "GUEST_TOKEN_REFUSED",
    });
    expect(on.guests.count("probe")).toBe(2);
    expect(on.cluster.plan.count("readPods")).toBe(2);
  });

  it("does not take a pod that Failed while it was being ended for one that ended by itself", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    for (const pod of on.cluster.pods(id)) Object.assign(pod, { phase: "Failed", ready: false, deleting: true });
    const opening = workspace.open(openWish, patient);
    await settleTasks();
    on.cluster.endPods(id);
    expect((await opening).origin).toBe("adopted_running");
  });

  it("L42 says why a pod ended by itself that this call does not replace, at once", async () => {
    on.cluster.seed(id);
    for (const pod of on.cluster.pods(id))
      Object.assign(pod, { phase: "Failed", ready: false, lastTermination: "OOMKilled" });
    await expect(workspace.adopt(patient)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
      message: expect.stringMatching(/ended by itself.*OOMKilled.*Open or resume the workspace/),
    });
    expect(writes()).toEqual([]);
  });
});

describe("L3 transitions of one handle", () => {
  it("run one at a time: a second open waits and finds it open", async () => {
    const post = on.cluster.plan.hold("createSandbox");
    const first = workspace.open(openWish, patient);
    const second = workspace.open(openWish, patient);
    await post.reached;
    post.release();
    expect([(await first).origin, (await second).origin]).toEqual(["created", "already_open"]);
  });

  it("a suspend ends the waiting part of an open, which is then not cleaned up after", async () => {
    on.cluster.habits.podsStart = false;
    const opening = workspace.open(openWish, patient);
    await settleTasks();
    const suspending = workspace.suspend(suspendWish, patient);
    await expect(opening).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "PREEMPTED" },
    });
    expect((await suspending).view.state).toBe("suspended");
    expect(writes()).toEqual(["createSandbox", "setMode"]);
  });

  it("a suspend also ends the starts that are queued before it, which send nothing", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    const patch = on.cluster.plan.hold("setMode");
    on.cluster.habits.podsStart = false;
    const first = workspace.open(openWish, patient);
    const queued = workspace.resume({ readyTimeoutMs: 60_000 }, patient);
    await patch.reached;
    const suspending = workspace.suspend(suspendWish, patient);
    patch.release();
    for (const start of [first, queued]) {
      await expect(start).rejects.toMatchObject({ metadata: { noticed_by: "PREEMPTED" } });
    }
    expect((await suspending).view.state).toBe("suspended");
    expect(on.cluster.sent.map((wish) => "mode" in wish && wish.mode)).toEqual(["Running", "Suspended"]);
  });

  it("a delete ends the waiting part of an open", async () => {
    on.cluster.habits.podsStart = false;
    const opening = workspace.open(openWish, patient);
    await settleTasks();
    const deleting = workspace.destroy({ ...suspendWish, deleteDisk: true }, patient);
    await expect(opening).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    await deleting;
    expect(writes()).toEqual(["createSandbox", "deleteSandbox"]);
  });

  it("a call whose caller went away before its turn changes nothing", async () => {
    const post = on.cluster.plan.hold("createSandbox");
    const first = workspace.open(openWish, patient);
    await post.reached;
    const caller = new AbortController();
    const queued = workspace.resume({ readyTimeoutMs: 60_000 }, caller.signal);
    caller.abort(new Error("gone"));
    await expect(queued).rejects.toThrow("gone");
    post.release();
    await first;
    await settleTasks();
    expect(workspace.state.t).toBe("active");
    expect(on.cluster.plan.count("readSandbox")).toBe(3); // The open's own: its first look, and its bind.
  });

  it("a call whose time ends in the queue sends nothing", async () => {
    on.cluster.habits.podsStart = false;
    const first = workspace.open(openWish, patient);
    await settleTasks();
    const second = workspace.resume({ readyTimeoutMs: 1_000 }, patient);
    await expect(on.clock.runUntilSettled(second)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_READY" });
    await expect(on.clock.runUntilSettled(first)).rejects.toMatchObject({ reason: "START_TIMEOUT" });
    expect(writes()).toEqual(["createSandbox", "setMode"]);
  });
});
