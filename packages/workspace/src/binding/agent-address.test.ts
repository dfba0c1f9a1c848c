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
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const serviceHost = "namzu-ws-demo.team-a.svc.cluster.local";
let on: Stage;
let workspace: Workspace;
let dialled: string[];

function open(agentAddress: "pod-ip" | "service" | undefined) {
  on = stage({ agentAddress });
  dialled = [];
  const { guest } = on.guests;
  on.guests.guest = (address) => {
    dialled.push(address.host);
    return guest.call(on.guests, address);
  };
  workspace = new Workspace(id, on.deps);
}

const reads = () => on.cluster.plan.count("readSandbox");

describe("L15 the address of an agent", () => {
  it.each([undefined, "pod-ip"] as const)("is its pod's, from the one read that gave the token (%s)", async (mode) => {
    open(mode);
    await workspace.open(openWish, patient);
    expect(dialled).toEqual([on.cluster.pods(id)[0]?.ip]);
  });

  it("is the name of its Service where the operator says so, with the pod's uid as the token", async () => {
    open("service");
    await workspace.open(openWish, patient);
    expect(dialled).toEqual([serviceHost]);
    expect(on.guests.calls.every(({ pod }) => pod === on.cluster.pods(id)[0]?.uid)).toBe(true);
    await workspace.suspend(suspendWish, patient);
    await workspace.resume({ readyTimeoutMs: 60_000 }, patient);
    expect(dialled).toEqual([serviceHost, serviceHost]);
  });

  it("asks the cluster the same, in the same order, in both modes", async () => {
    const traces = [];
    for (const mode of ["pod-ip", "service"] as const) {
      open(mode);
      await workspace.open(openWish, patient);
      await workspace.destroy({ ...suspendWish, deleteDisk: true }, patient);
      traces.push(on.cluster.plan.requests);
    }
    expect(traces[0]).toEqual(traces[1]);
  });

  it("is waited for where the Service has no name yet, and START_TIMEOUT says so", async () => {
    open("service");
    const seeded = on.cluster.seed(id);
    seeded.serviceHost = undefined;
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 20_000 }, patient);
    await settleTasks();
    expect(dialled).toEqual([]);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { problem: "no_address", pod: "namzu-ws-demo" },
    });
    seeded.serviceHost = serviceHost;
    expect((await new Workspace(id, on.deps).open(openWish, patient)).state).toBe("running");
  });
});

describe("a name that does not resolve", () => {
  beforeEach(() => open("service"));
  const unresolvable = {
    reason: "AGENT_ADDRESS_UNRESOLVABLE",
    message: expect.stringContaining("--agent-address pod-ip"),
    metadata: { host: serviceHost, setting: "--agent-address" },
  };

  it("is AGENT_ADDRESS_UNRESOLVABLE with host and setting, at once, also out of a create", async () => {
    on.guests.shape = (script) => {
      script.unreached = "name-unresolvable";
    };
    await expect(workspace.open(openWish, patient)).rejects.toMatchObject(unresolvable);
    expect(dialled).toHaveLength(1);
  });

  it("fails a call so, with no re-read and no rebind", async () => {
    await workspace.open(openWish, patient);
    on.guests.agent(on.cluster.pods(id)[0]?.uid as never).unreached = "name-unresolvable";
    const before = reads();
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject(unresolvable);
    expect(reads()).toBe(before);
    expect(workspace.state.t).toBe("active");
  });
});

describe("L39 a dial that cannot connect, by Service name", () => {
  it("goes to the pod that replaced the lost one, though the name is the same; to the same pod it keeps its error", async () => {
    open("service");
    await workspace.open(openWish, patient);
    const next = on.cluster.replacePod(id);
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
    expect(workspace.view().identity.podUid).toBe(next.uid);
    on.guests.agent(next.uid).unreached = "no-connection";
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject({
      reason: "AGENT_UNREACHABLE",
    });
    expect(dialled).toHaveLength(2);
  });
});

describe("L15 a pod that is being left", () => {
  it("may be bound again only once the controller has seen the later Running and it still carries no deletionTimestamp", async () => {
    open("pod-ip");
    await workspace.open(openWish, patient);
    const old = on.cluster.pods(id)[0]?.uid;
    on.cluster.habits.controller = false; // It sees neither the suspend nor the resume until it is told to look.
    await on.clock
      .runUntilSettled(workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient))
      .catch(() => undefined);
    on.cluster.foreignMode(id, "Running");
    const resuming = workspace.resume({ readyTimeoutMs: 60_000 }, patient);
    await settleTasks();
    expect(workspace.state.t).toBe("resuming");
    on.cluster.observe(id);
    expect((await resuming).identity.podUid).toBe(old);
  });
});
