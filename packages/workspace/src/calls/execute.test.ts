import { Deadline } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import {
  collect,
  executionWish,
  Gate,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { GuestLost, GuestNotReached } from "../ports/guest.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  on.cluster.plan.requests.length = 0;
  on.guests.calls.length = 0;
});

const run = (signal = patient) => collect(workspace.execute(executionWish(), signal));
const agent = () => on.guests.agent(podUid());
const reads = () => on.cluster.plan.count("readSandbox");

function podUid() {
  const uid = on.cluster.pods(id)[0]?.uid;
  if (uid === undefined) throw new Error("no pod stands");
  return uid;
}

/** A stream that fails before its first event. */
async function* refusing(error: unknown, after?: Promise<void>): AsyncGenerator<never> {
  await after;
  throw error;
}

/** The agent sends `before` and then its link breaks. */
function breakAfter(before: "nothing" | "started", error: unknown): void {
  agent().execute = async function* (wish) {
    if (before === "started") {
      yield { t: "started", executionId: wish.executionId, bootId: "boot" as never, attached: false };
      yield { t: "output", stream: "stdout", offset: 0, data: new Uint8Array(5) };
    }
    throw error;
  };
}

describe("admission", () => {
  it("costs no read of the cluster when all is well", async () => {
    expect(await run()).toHaveLength(3);
    expect(on.cluster.plan.requests).toEqual([]);
  });

  it("refuses up front while suspended, with nothing dialled and nothing read", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.plan.requests.length = 0;
    on.guests.calls.length = 0;
    await expect(run()).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "ADMISSION", operation: "Execute", sandbox: "namzu-ws-demo" },
    });
    expect([on.cluster.plan.requests, on.guests.calls]).toEqual([[], []]);
  });

  it("refuses while it starts", async () => {
    on.cluster.habits.podsStart = false;
    const starting = new Workspace(workspaceId("other"), on.deps);
    const opening = starting.open(openWish, patient).catch(() => undefined);
    await settleTasks();
    await expect(collect(starting.execute(executionWish(), patient))).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
    });
    await on.clock.runUntilSettled(opening);
  });

  it("is still given while a suspend is only being prepared, and ends with the patch", async () => {
    const gate = on.cluster.plan.hold("readSandbox");
    const suspending = workspace.suspend(suspendWish, patient);
    await gate.reached;
    expect(await run()).toHaveLength(3);
    const patch = on.cluster.plan.hold("setMode");
    gate.release();
    await patch.reached;
    expect(workspace.state.t).toBe("closing");
    await expect(run()).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    patch.release();
    await suspending;
  });
});

describe("L36 a call that fails at the transport", () => {
  it("is followed by one re-read, and keeps its own error where the workspace runs", async () => {
    breakAfter("started", new GuestLost("reset"));
    await expect(run()).rejects.toMatchObject({
      reason: "EXECUTION_DETACHED",
      metadata: { execution_id: "x1", next_offset: "5" },
      cause: expect.any(GuestLost),
    });
    expect(reads()).toBe(1);
    expect(workspace.state.t).toBe("active");
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("is WORKSPACE_SUSPENDED, noticed by TRANSPORT, when somebody suspended it", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    breakAfter("started", new GuestLost("reset"));
    await expect(run()).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "TRANSPORT" },
      cause: expect.any(GuestLost),
    });
    expect(workspace.state.t).toBe("suspending");
    expect(on.cluster.plan.writes).toEqual([]);
    await expect(run()).rejects.toMatchObject({ metadata: { noticed_by: "ADMISSION" } });
    expect(reads()).toBe(1);
  });

  it("names our own suspend without a read", async () => {
    on.cluster.habits.podsEnd = false;
    let snap: (error: Error) => void = () => undefined;
    agent().execute = async function* (wish) {
      yield { t: "started", executionId: wish.executionId, bootId: "boot" as never, attached: false };
      await new Promise((_, reject) => {
        snap = reject;
      });
    };
    const running = run();
    await settleTasks();
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.plan.requests.length = 0;
    snap(new GuestLost("the pod is going"));
    await expect(running).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "TRANSPORT" },
    });
    expect(reads()).toBe(0);
    on.cluster.endPods(id);
    await suspending;
  });

  it("is read for once by all calls that fail together", async () => {
    breakAfter("started", new GuestLost("reset"));
    const held = on.cluster.plan.hold("readSandbox");
    const all = Promise.allSettled([run(), run(), run()]);
    await held.reached;
    held.release();
    expect((await all).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(reads()).toBe(1);
  });

  it("is not re-read for after an answer of the guest, or after success", async () => {
    const answer = new HoldfastError("EXECUTION_CAPACITY", { message: "full" });
    breakAfter("nothing", answer);
    await expect(run()).rejects.toMatchObject({ reason: "EXECUTION_CAPACITY", message: "full" });
    expect(on.cluster.plan.requests).toEqual([]);
  });

  it("keeps its own error when the re-read fails, or takes too long", async () => {
    breakAfter("started", new GuestLost("reset"));
    on.cluster.plan.fail("readSandbox", "unavailable", "stall");
    await expect(run()).rejects.toMatchObject({ reason: "EXECUTION_DETACHED" });
    await expect(on.clock.runUntilSettled(run(), 10_000)).rejects.toMatchObject({ reason: "EXECUTION_DETACHED" });
    expect(workspace.state.t).toBe("active");
  });

  it("is WORKSPACE_DELETING when somebody deletes it", async () => {
    on.cluster.stored(id).deleting = true;
    breakAfter("started", new GuestLost("reset"));
    await expect(run()).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    expect(workspace.state.t).toBe("deleting");
  });

  it("says that the outcome is unknown when the object vanished under a command that had begun", async () => {
    agent().execute = async function* (wish) {
      yield { t: "started", executionId: wish.executionId, bootId: "boot" as never, attached: false };
      on.cluster.foreignDelete(id);
      throw new GuestLost("reset");
    };
    await expect(run()).rejects.toMatchObject({ reason: "EXECUTION_DETACHED" });
    expect(workspace.state).toEqual({ t: "gone", why: "absent" });
  });

  it("gives a caller that cancels its own reason, and reads nothing", async () => {
    const caller = new AbortController();
    agent().execute = async function* (_, signal) {
      yield await new Promise<never>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    };
    const running = run(caller.signal);
    await settleTasks();
    const reason = new Error("enough");
    caller.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(on.cluster.plan.requests).toEqual([]);
  });
});

describe("L39 rebinding", () => {
  it("moves to the pod that replaced the lost one, once, and runs the command there", async () => {
    const lost = podUid();
    const moved = on.cluster.replacePod(id);
    expect(await run()).toHaveLength(3);
    expect(on.guests.calls.filter(({ verb }) => verb === "execute").map(({ pod }) => pod)).toEqual([lost, moved.uid]);
    expect(workspace.view().identity).toMatchObject({ podUid: moved.uid, bootId: `boot-of-${moved.uid}` });
    expect(on.cluster.plan.writes).toEqual([]);
    expect(on.guests.closed).toContain(lost);
  });

  it("goes to the same pod under the address that it has now, and stays there", async () => {
    const { uid } = on.cluster.movePod(id, "10.9.9.9");
    expect(await run()).toHaveLength(3);
    expect(on.guests.calls.map(({ verb, pod }) => [verb, pod])).toEqual([
      ["execute", uid],
      ["probe", uid],
      ["health", uid],
      ["execute", uid],
    ]);
    expect(workspace.state.t).toBe("active");
    on.cluster.plan.requests.length = 0;
    expect(await run()).toHaveLength(3);
    expect(on.cluster.plan.requests).toEqual([]);
  });

  it("L17 proves the new guest before the command is sent to it", async () => {
    const moved = on.cluster.replacePod(id);
    await run();
    expect(on.guests.calls.filter(({ pod }) => pod === moved.uid).map(({ verb }) => verb)).toEqual([
      "probe",
      "health",
      "execute",
    ]);
  });

  it("sends nothing to a new guest that is privileged", async () => {
    on.guests.shape = (script) => {
      script.probe = async () => "CapInh:\t1";
    };
    const moved = on.cluster.replacePod(id);
    await expect(run()).rejects.toMatchObject({ reason: "GUEST_PRIVILEGED" });
    expect(on.guests.calls.filter(({ pod }) => pod === moved.uid).map(({ verb }) => verb)).toEqual(["probe"]);
  });

  it("is one look for all calls that were refused together", async () => {
    on.cluster.replacePod(id);
    const held = on.cluster.plan.hold("readSandbox");
    const all = Promise.all([run(), run(), run()]);
    await held.reached;
    await settleTasks();
    held.release();
    expect((await all).map((events) => events.length)).toEqual([3, 3, 3]);
    expect(on.cluster.plan.count("readClaims")).toBe(1);
    expect(on.guests.count("probe")).toBe(1);
  });

  it("retries without a read a refusal that lands after another call's rebind", async () => {
    let refuse: () => void = () => undefined;
    const refusal = new Promise<void>((resolve) => {
      refuse = resolve;
    });
    agent().execute = () => refusing(new GuestNotReached("no-connection", "late refusal"), refusal);
    const late = run();
    await settleTasks();
    on.cluster.replacePod(id);
    await run();
    on.cluster.plan.requests.length = 0;
    refuse();
    expect(await late).toHaveLength(3);
    expect(on.cluster.plan.requests).toEqual([]);
  });

  it("keeps the original error, and dials nothing again, where the pod is the same", async () => {
    agent().unreached = "no-connection";
    await expect(run()).rejects.toMatchObject({ reason: "AGENT_UNREACHABLE" });
    expect(on.guests.count("execute")).toBe(1);
    agent().unreached = "token-refused";
    await expect(run()).rejects.toMatchObject({ reason: "GUEST_TOKEN_REFUSED" });
    agent().unreached = "retiring";
    await expect(run()).rejects.toMatchObject({ reason: "AGENT_RETIRING" });
    expect(workspace.state.t).toBe("active");
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("keeps the original error where the look fails", async () => {
    on.cluster.replacePod(id);
    on.cluster.plan.fail("readPods", "unavailable");
    await expect(run()).rejects.toMatchObject({ reason: "AGENT_UNREACHABLE" });
    expect(workspace.state.t).toBe("active");
  });

  it("does not read for a name that does not resolve", async () => {
    agent().unreached = "name-unresolvable";
    await expect(run()).rejects.toMatchObject({ reason: "AGENT_ADDRESS_UNRESOLVABLE" });
    expect(on.cluster.plan.requests).toEqual([]);
  });

  it("is WORKSPACE_REPLACED for another object of the name, and for none; never rebound", async () => {
    const expected = workspace.view().identity.sandboxUid;
    on.cluster.foreignDelete(id);
    const another = on.cluster.seed(id);
    await expect(run()).rejects.toMatchObject({
      reason: "WORKSPACE_REPLACED",
      metadata: { expected, actual: another.uid },
    });
    expect(workspace.state).toEqual({ t: "gone", why: "replaced" });
    expect(on.guests.count("probe")).toBe(0);
  });

  it("is WORKSPACE_SUSPENDED when somebody suspended it", async () => {
    on.cluster.foreignMode(id, "Suspended");
    await expect(run()).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED", metadata: { noticed_by: "TRANSPORT" } });
    expect(workspace.state.t).toBe("suspending");
  });

  it("waits at most 10 s for a bindable pod, unbound meanwhile", async () => {
    on.cluster.stored(id).pods = [];
    const running = run();
    await settleTasks();
    expect(workspace.view()).toMatchObject({ state: "not_ready", identity: { podUid: undefined, bootId: undefined } });
    on.cluster.replacePod(id);
    expect(await running).toHaveLength(3);
    on.cluster.stored(id).pods = [];
    await expect(on.clock.runUntilSettled(run(), 10_000)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
      metadata: { problem: "no_pod" },
    });
  });

  it("L42 says at once that its pod ended by itself, and why; nothing is patched or deleted", async () => {
    Object.assign(on.cluster.pods(id)[0] ?? {}, {
      phase: "Failed",
      ready: false,
      lastTermination: "OOMKilled",
      ip: undefined,
    });
    await expect(run()).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
      message: expect.stringMatching(/OOMKilled.*Open or resume the workspace/),
    });
    expect(workspace.view()).toMatchObject({ state: "not_ready" });
    expect(on.cluster.plan.writes).toEqual([]);
    expect((await workspace.resume({ readyTimeoutMs: 1_000 }, patient)).state).toBe("running");
  });

  it("happens at most once per call", async () => {
    on.guests.shape = (script) => {
      script.execute = () => {
        on.cluster.replacePod(id);
        return refusing(new GuestNotReached("no-connection", "replaced again"));
      };
    };
    on.cluster.replacePod(id);
    await expect(run()).rejects.toMatchObject({ reason: "AGENT_UNREACHABLE" });
    expect(on.guests.count("execute")).toBe(2);
    expect(reads()).toBe(3); // The look, and the bind that it led to: before the pod, and after it.
  });

  it("sends nothing to a guest that is found while a suspend is being written", async () => {
    on.cluster.habits.podsEnd = false;
    const declined = { ...suspendWish, flush: { enabled: false, timeoutMs: 1 } };
    const overtaken = workspace.suspend(declined, patient).catch(() => undefined);
    await settleTasks();
    on.cluster.foreignMode(id, "Running");
    await overtaken;
    expect(workspace.state).toMatchObject({ t: "unbound", lost: undefined });

    const found = new Gate();
    on.guests.shape = (script) => {
      const { probe } = script;
      script.probe = async (within) => {
        await found.pass(within.signal);
        return await probe(within);
      };
    };
    on.cluster.endPods(id);
    const running = run().catch((error: unknown) => error);
    await found.reached;
    const patch = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(declined, patient).catch(() => undefined);
    await patch.reached;
    expect(workspace.state.t).toBe("closing");
    found.release();
    expect(await running).toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    expect(on.guests.count("execute")).toBe(0);
    on.cluster.habits.podsEnd = true;
    patch.release();
    await suspending;
  });

  it("never happens after the first event was delivered", async () => {
    agent().execute = async function* (wish) {
      yield { t: "started", executionId: wish.executionId, bootId: "boot" as never, attached: false };
      on.cluster.replacePod(id);
      throw new GuestNotReached("no-connection", "impossible");
    };
    await expect(run()).rejects.toMatchObject({ reason: "EXECUTION_DETACHED" });
    expect(on.guests.count("execute")).toBe(1);
  });

  it("goes to the guest that a start bound meanwhile, where its own look comes late", async () => {
    const late = on.cluster.replacePod(id);
    const claims = on.cluster.plan.hold("readClaims");
    const running = run();
    await claims.reached;
    const { uid } = on.cluster.replacePod(id);
    await workspace.open(openWish, patient);
    expect(workspace.view().identity.podUid).toBe(uid);
    claims.release();
    expect(await running).toHaveLength(3);
    expect(on.guests.calls.filter(({ verb }) => verb === "execute").at(-1)?.pod).toBe(uid);
    expect(on.guests.calls.filter(({ verb, pod }) => verb === "execute" && pod === late.uid)).toEqual([]);
    expect(workspace.view().identity.podUid).toBe(uid);
    expect(on.guests.closed.filter((pod) => pod === uid)).toHaveLength(1); // The guest of the late look, which nobody uses.
  });

  it("drops news that comes after a suspend began: what the recipe says counts", async () => {
    on.cluster.stored(id).pods = [];
    const running = run().catch((error: unknown) => error);
    await settleTasks();
    await workspace.suspend({ ...suspendWish, flush: { enabled: false, timeoutMs: 1 } }, patient);
    expect(workspace.state.t).toBe("suspended");
    expect(await on.clock.runUntilSettled(running, 10_000)).toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    expect(workspace.state.t).toBe("suspended");
  });
});

describe("L40 identity", () => {
  it("follows the guest's own process, and takes nothing from a guest that was left", async () => {
    agent().health = async () => ({ serving: true, protocolVersion: 1, features: [], bootId: "second" as never });
    using within = new Deadline(on.clock, 1_000);
    await workspace.health(within);
    expect(workspace.view().identity.bootId).toBe("second");
    expect(workspace.state.t).toBe("active");
  });

  it("health never rebinds, and is undefined where nobody answers", async () => {
    on.cluster.replacePod(id);
    using within = new Deadline(on.clock, 1_000);
    expect(await workspace.health(within)).toBeUndefined();
    expect(on.cluster.plan.requests).toEqual([]);
  });
});

describe("close", () => {
  it("ends nobody's stream: the guest is let go when its last one has ended", async () => {
    let finish: () => void = () => undefined;
    const { execute } = agent();
    agent().execute = async function* (wish, signal) {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      yield* execute(wish, signal);
    };
    const running = run();
    await settleTasks();
    expect(workspace.view().live.executions).toBe(1);
    workspace.close();
    expect(on.guests.closed).toEqual([]);
    finish();
    expect(await running).toHaveLength(3);
    expect(on.guests.closed).toEqual([podUid()]);
    expect(on.cluster.plan.requests).toEqual([]);
  });
});
