import { WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { CoreV1Api } from "@kubernetes/client-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { serviceOnFaultyCluster } from "./faulty-cluster.ts";
import { eventually, reasonOf, shell as shellIn } from "./harness.ts";

let stage: Awaited<ReturnType<typeof serviceOnFaultyCluster>>;
let service: typeof stage.service;
let pods: CoreV1Api;

beforeAll(async () => {
  stage = await serviceOnFaultyCluster();
  service = stage.service;
  pods = stage.config.makeApiClient(CoreV1Api);
}, 60_000);

afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
}, 60_000);

const faults = (...words: string[]): Promise<string> => stage.faults(...words);

const place = (workspaceId: string) => ({ namespace: "default", name: `namzu-ws-${workspaceId}` });

beforeEach(async () => void (await faults("clear")));

/** A shell and a command that say nothing, each with a client that waits for more. */
async function quietClients(workspaceId: string) {
  const { sessions, executions, workspaces } = service;
  await workspaces.openWorkspace({ workspaceId });
  const program = {
    command: "/bin/sh",
    args: ["-c", "printf ready; exec sleep 1000"],
    size: { columns: 80, rows: 24 },
  };
  await sessions.openTerminal({ workspaceId, sessionId: "shell", program });
  const ready = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const shell = (async () => {
    for await (const { event } of sessions.attachTerminal({ workspaceId, sessionId: "shell" })) {
      if (event.case === "data") ready[0].resolve();
      if (event.case === "exited") return event.value.exit?.status;
    }
    throw new Error("it ended without an exit");
  })();
  const command = (async () => {
    const start = { workspaceId, executionId: "quiet", command: "sleep", args: ["1000"] };
    for await (const { event } of executions.execute(start)) {
      if (event.case === "started") ready[1].resolve();
      if (event.case === "exited") return event.value.status;
    }
    throw new Error("it ended without an exit");
  })();
  await Promise.all(ready.map(({ promise }) => promise));
  return { shell, command };
}

/** How a client's stream ended: by its program's end, which it then tells, or by an error. */
async function endOf<T>(client: Promise<T>): Promise<T | Awaited<ReturnType<typeof reasonOf>>> {
  return await client.catch(() => reasonOf(client));
}

const watchesCut = [
  { match: { by: "client", verb: "watch" }, action: { t: "fail", code: 503 } },
  { dropWatches: { by: "client" } },
];

describe("B18 B32 a pod that is deleted under quiet clients", () => {
  it.each([
    ["while the service watches", []],
    ["while the service's watches stand still", [{ watches: { by: "client" } }]],
    ["while the service's watches are cut and refused", watchesCut],
  ])(
    "%s: their streams end within 15 s, and say that the guest is gone",
    async (what, rules) => {
      const workspaceId = what.replaceAll(/[^a-z]+/g, "-");
      const { shell, command } = await quietClients(workspaceId);
      const before = (await service.workspaces.getWorkspace({ workspaceId })).workspace?.identity;
      for (const rule of rules) await faults("add", JSON.stringify(rule));
      const beganMs = performance.now();
      await pods.deleteNamespacedPod({ ...place(workspaceId), gracePeriodSeconds: 0 });
      const ends = await Promise.all([endOf(shell), endOf(command)]);
      expect(performance.now() - beganMs).toBeLessThan(15_000);
      const gone = { reason: "GUEST_GONE", code: "Unknown" };
      const how = { previous_pod: before?.podUid, evidence: "pod_gone" };
      const unheard = [
        { ...gone, metadata: { session_id: "shell", offset: "5", ...how } },
        { ...gone, metadata: { execution_id: "quiet", next_offset: "0", ...how } },
      ];
      // An agent that is stopped may have had the time to say how its programs ended: then that is heard.
      ends.forEach((end, at) => {
        expect(end).toMatchObject(end !== undefined && "case" in end ? { case: "signal" } : (unheard[at] ?? {}));
      });
      await faults("clear");
      // B32: the next pod has another agent, which never shows a new shell under the old id.
      const { bootId = "" } = (await service.workspaces.openWorkspace({ workspaceId })).workspace?.identity ?? {};
      expect(bootId).not.toBe(before?.bootId);
      const late = async (expectedBootId: string): Promise<void> => {
        const stream = service.sessions.attachTerminal({ workspaceId, sessionId: "shell", expectedBootId });
        for await (const { event } of stream) throw new Error(`it was attached: ${event.case}`);
      };
      expect((await reasonOf(late(""))).reason).toBe("SESSION_NOT_FOUND");
      expect((await reasonOf(late(before?.bootId ?? ""))).reason).toBe("GUEST_RESTARTED");
    },
    60_000,
  );

  it("without a word on the network: the watch alone tells it, and the streams end within 15 s", async () => {
    const workspaceId = "silent";
    const { shell, command } = await quietClients(workspaceId);
    await faults("add", JSON.stringify({ cutAddress: { name: place(workspaceId).name } }));
    const beganMs = performance.now();
    await pods.deleteNamespacedPod({ ...place(workspaceId), gracePeriodSeconds: 0 });
    const ends = await Promise.all([reasonOf(shell), reasonOf(command)]);
    expect(performance.now() - beganMs).toBeLessThan(15_000);
    expect(ends.map(({ reason }) => reason)).toEqual(["GUEST_GONE", "GUEST_GONE"]);
  }, 60_000);

  it("with its grace: the agent ends what runs, and both clients hear how", async () => {
    const workspaceId = "polite";
    const { shell, command } = await quietClients(workspaceId);
    const beganMs = performance.now();
    await pods.deleteNamespacedPod(place(workspaceId));
    expect(await Promise.all([shell, command])).toMatchObject([{ case: "signal" }, { case: "signal" }]);
    expect(performance.now() - beganMs).toBeLessThan(15_000);
  }, 60_000);
});

/** What a workspace's watcher hears of its guests. */
function guestsOf(workspaceId: string) {
  const leaving = new AbortController();
  const lost: string[] = [];
  const replaced: { readonly previous: string; readonly current: string; readonly bootIds: number }[] = [];
  const reading = (async () => {
    const events = service.workspaces.watchWorkspace({ workspaceId }, { signal: leaving.signal });
    for await (const { event } of events) {
      if (event.case === "changed" && event.value.state === WorkspaceState.NOT_READY) lost.push("not ready");
      if (event.case !== "podReplaced") continue;
      const { previous, current } = event.value;
      const bootIds = new Set([previous?.bootId, current?.bootId]).size;
      replaced.push({ previous: previous?.podUid ?? "", current: current?.podUid ?? "", bootIds });
    }
  })().catch(() => undefined); // It ends when the test leaves it.
  return {
    lost,
    replaced,
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await reading;
    },
  };
}

describe("B72 a pod that others take away", () => {
  it("five times by hand, and by an eviction: told as lost and as replaced, and the next command runs without repair", async () => {
    const workspaceId = "taken";
    await service.workspaces.openWorkspace({ workspaceId });
    await shellIn(service, workspaceId, "echo kept > note");
    await using heard = guestsOf(workspaceId);
    const uids: string[] = [];
    const podUid = async () =>
      (await service.workspaces.getWorkspace({ workspaceId })).workspace?.identity?.podUid ?? "none";
    uids.push(await podUid());
    const { name } = place(workspaceId);
    for (let round = 0; round < 6; round += 1) {
      if (round === 5) {
        await pods.createNamespacedPodEviction({ ...place(workspaceId), body: { metadata: { name } } });
      } else {
        const grace = round % 2 === 0 ? {} : { gracePeriodSeconds: 0 };
        await pods.deleteNamespacedPod({ ...place(workspaceId), ...grace });
      }
      await eventually(10_000, async () => (heard.lost.length > round ? true : undefined));
      // Nobody opens or resumes it. Within the time that a command waits for a pod, or soon after.
      const stdout = await eventually(30_000, async () => {
        try {
          return (await shellIn(service, workspaceId, "cat note")).stdout;
        } catch (error) {
          expect(error).toMatchObject({ rawMessage: expect.stringContaining("cannot be used") });
          return undefined;
        }
      });
      expect(stdout).toBe("kept\n");
      uids.push(await podUid());
    }
    expect(new Set(uids).size).toBe(7);
    const steps = uids.slice(1).map((current, at) => ({ previous: uids[at], current, bootIds: 2 }));
    await eventually(5_000, async () => (heard.replaced.length === 6 ? true : undefined));
    expect(heard.replaced).toEqual(steps);
  }, 120_000);
});

/** Whatever needs a guest. */
const callsOn = (workspaceId: string): Record<string, () => Promise<unknown>> => ({
  AttachTerminal: () => ended(service.sessions.attachTerminal({ workspaceId, sessionId: "t" })),
  OpenTerminal: () => service.sessions.openTerminal({ workspaceId, sessionId: "t", program: { command: "sh" } }),
  ListSessions: () => service.sessions.listSessions({ workspaceId }),
  Execute: () => ended(service.executions.execute({ workspaceId, command: "true" })),
  RunCommand: () => shellIn(service, workspaceId, "true"),
  AttachExecution: () => ended(service.executions.attachExecution({ workspaceId, executionId: "x" })),
  StatFile: () => service.files.statFile({ workspaceId, path: "f" }),
  ReadFile: () => ended(service.files.readFile({ workspaceId, path: "f" })),
  PutFile: () => service.files.putFile({ start: { workspaceId, path: "f" } }),
});

async function ended(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

describe("B90 a workspace that has no guest", () => {
  /** Each call is refused like this, by its way out, within half a second; a busy machine has a second try. */
  async function expectRefused(workspaceId: string, refusal: { reason: string; code: string; message: RegExp }) {
    for (const [name, call] of Object.entries(callsOn(workspaceId))) {
      let tookMs = Number.POSITIVE_INFINITY;
      for (let time = 0; time < 2 && tookMs >= 500; time += 1) {
        const beganMs = performance.now();
        const { reason, code, message } = await reasonOf(call());
        tookMs = performance.now() - beganMs;
        expect({ name, reason, code }).toEqual({ name, reason: refusal.reason, code: refusal.code });
        expect(message, name).toMatch(refusal.message);
      }
      expect(tookMs, name).toBeLessThan(500);
    }
  }

  it("says so at once, by a reason and with the way out: suspending, suspended, failed, unknown", async () => {
    const { workspaces } = service;
    await workspaces.openWorkspace({ workspaceId: "sleeps" });
    const { name } = place("sleeps");
    await faults(
      "add",
      JSON.stringify({
        match: { by: "node", verb: ["delete", "patch"], resource: "pods", name },
        action: { t: "hold" },
      }),
    );
    const suspending = workspaces.suspendWorkspace({ workspaceId: "sleeps" });
    await eventually(10_000, async () => {
      const { workspace } = await workspaces.getWorkspace({ workspaceId: "sleeps" });
      return workspace?.state === WorkspaceState.SUSPENDING ? true : undefined;
    });
    const suspended = {
      reason: "WORKSPACE_SUSPENDED",
      code: "FailedPrecondition",
      message: /Resume it, then call again/,
    };
    await expectRefused("sleeps", suspended);
    await faults("clear");
    expect((await suspending).workspace?.state).toBe(WorkspaceState.SUSPENDED);
    await expectRefused("sleeps", suspended);

    await workspaces.openWorkspace({ workspaceId: "failed" });
    await faults("add", JSON.stringify({ evict: { name: place("failed").name } }));
    await eventually(10_000, async () => {
      const { workspace } = await workspaces.getWorkspace({ workspaceId: "failed" });
      return workspace?.state === WorkspaceState.NOT_READY ? true : undefined;
    });
    await expectRefused("failed", {
      reason: "WORKSPACE_NOT_READY",
      code: "FailedPrecondition",
      message: /Open or resume the workspace, which replaces that pod; the disk is kept/,
    });
    expect((await workspaces.resumeWorkspace({ workspaceId: "failed" })).workspace?.state).toBe(WorkspaceState.RUNNING);

    await expectRefused("unknown", {
      reason: "WORKSPACE_NOT_FOUND",
      code: "NotFound",
      message: /Open it to create it/,
    });
  }, 120_000);
});
