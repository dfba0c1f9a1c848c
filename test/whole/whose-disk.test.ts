import { Origin, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { CreatePolicy } from "@holdfast/api/holdfast/v1/workspace_pb";
import { sandboxResource } from "@holdfast/contract";
import { CoreV1Api, CustomObjectsApi, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { serviceOnFaultyCluster } from "./faulty-cluster.ts";
import { eventually, reasonOf, shell } from "./harness.ts";

let stage: Awaited<ReturnType<typeof serviceOnFaultyCluster>>;
let service: typeof stage.service;
let core: CoreV1Api;
let objects: CustomObjectsApi;

beforeAll(async () => {
  stage = await serviceOnFaultyCluster();
  service = stage.service;
  core = stage.config.makeApiClient(CoreV1Api);
  objects = stage.config.makeApiClient(CustomObjectsApi);
}, 60_000);

afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
}, 60_000);

const faults = (...words: string[]): Promise<string> => stage.faults(...words);

beforeEach(async () => void (await faults("clear")));

const namespace = "default";
const nameOf = (workspaceId: string): string => `namzu-ws-${workspaceId}`;
const sandboxOf = (workspaceId: string) => ({ ...sandboxResource, namespace, name: nameOf(workspaceId) });

/** The claims of a workspace that stand, name → uid. */
async function claimsOf(workspaceId: string): Promise<Record<string, string>> {
  const { items } = await core.listNamespacedPersistentVolumeClaim({ namespace });
  const own = items.filter(({ metadata }) => metadata?.name?.endsWith(nameOf(workspaceId)));
  return Object.fromEntries(own.map(({ metadata }) => [metadata?.name ?? "", metadata?.uid ?? ""]));
}

/** What stands of a workspace: its object, its pod, its claims. */
async function remainsOf(workspaceId: string): Promise<string[]> {
  const found: string[] = [];
  const { items } = (await objects.listNamespacedCustomObject({ ...sandboxResource, namespace })) as {
    items: { metadata: { name: string } }[];
  };
  if (items.some(({ metadata }) => metadata.name === nameOf(workspaceId))) found.push("object");
  const pods = await core.listNamespacedPod({ namespace });
  const pod = pods.items.find(({ metadata }) => metadata?.name === nameOf(workspaceId));
  if (pod) found.push(["Succeeded", "Failed"].includes(pod.status?.phase ?? "") ? "ended pod" : "pod");
  if (Object.keys(await claimsOf(workspaceId)).length > 0) found.push("claim");
  return found;
}

async function open(workspaceId: string) {
  const { workspace } = await service.workspaces.openWorkspace({ workspaceId });
  if (!workspace?.identity) throw new Error("it was opened without an identity");
  return { ...workspace, identity: workspace.identity };
}

const mergePatch = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);

/** As a controller does that has something to do before the object may go. */
async function holdObject(workspaceId: string, isHeld: boolean): Promise<void> {
  const body = { metadata: { finalizers: isHeld ? ["test/held"] : [] } };
  await objects.patchNamespacedCustomObject({ ...sandboxOf(workspaceId), body }, mergePatch);
}

/** As a storage driver does that has not let go of the volume yet. */
async function holdClaims(workspaceId: string, isHeld: boolean): Promise<void> {
  const body = { metadata: { finalizers: isHeld ? ["test/held"] : [] } };
  for (const name of Object.keys(await claimsOf(workspaceId))) {
    await core.patchNamespacedPersistentVolumeClaim({ namespace, name, body }, mergePatch);
  }
}

describe("B77 files that were written before a suspend", () => {
  it("are there after it, over five cycles of 1,000 files that nobody synced, on the same disk", async () => {
    const workspaceId = "cycles";
    const { identity } = await open(workspaceId);
    expect(identity.claimUids).toEqual(await claimsOf(workspaceId));
    const sums: string[] = [];
    const hash = (cycle: number): string => `cat cycle-${cycle}/* | sha256sum`;
    for (let cycle = 0; cycle < 5; cycle += 1) {
      const write = `mkdir cycle-${cycle}; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo "${cycle} $i $$" > cycle-${cycle}/$i; done`;
      const { stdout } = await shell(service, workspaceId, `${write}; ${hash(cycle)}`);
      sums.push(stdout);
      await service.workspaces.suspendWorkspace({ workspaceId });
      const { workspace } = await service.workspaces.resumeWorkspace({ workspaceId });
      expect(workspace?.identity?.claimUids).toEqual(identity.claimUids);
      const read = sums.map((_, at) => hash(at)).join("; ");
      expect((await shell(service, workspaceId, `ls cycle-*/* | wc -l; ${read}`)).stdout).toBe(
        `${(cycle + 1) * 1_000}\n${sums.join("")}`,
      );
    }
  });
});

describe("B79 whose workspace it is that a call reaches", () => {
  it("is never another, empty one: what is missing is not found, and made only where that is asked for", async () => {
    const { workspaces } = service;
    const workspaceId = "missing";
    const create = CreatePolicy.MUST_EXIST;
    expect(await reasonOf(workspaces.openWorkspace({ workspaceId, create }))).toMatchObject({ code: "NotFound" });
    const calls = [
      () => shell(service, workspaceId, "true"),
      () => workspaces.resumeWorkspace({ workspaceId }),
      () => workspaces.getWorkspace({ workspaceId }),
      () => service.files.statFile({ workspaceId, path: "note" }),
      () => workspaces.openWorkspace({ workspaceId, expectedSandboxUid: "somebody" }),
    ];
    for (const call of calls) {
      expect(await reasonOf(call())).toMatchObject({ reason: "WORKSPACE_NOT_FOUND", code: "NotFound" });
    }
    expect(await remainsOf(workspaceId)).toEqual([]);
    const made = await open(workspaceId);
    expect(made.origin).toBe(Origin.CREATED);
    const object = (await objects.getNamespacedCustomObject(sandboxOf(workspaceId))) as { metadata: { uid: string } };
    expect(made.identity.sandboxUid).toBe(object.metadata.uid);
  });

  it("is the one that is meant: another of its name is refused, by who expects it and by who had it open", async () => {
    const { workspaces } = service;
    const workspaceId = "another";
    const first = await open(workspaceId);
    await shell(service, workspaceId, "echo kept > note");
    await objects.deleteNamespacedCustomObject(sandboxOf(workspaceId));
    await eventually(60_000, async () => ((await remainsOf(workspaceId)).length === 0 ? true : undefined));
    const next = await open(workspaceId);
    expect([next.origin, next.identity.sandboxUid === first.identity.sandboxUid]).toEqual([Origin.CREATED, false]);
    const expectedSandboxUid = first.identity.sandboxUid;
    expect(await reasonOf(workspaces.openWorkspace({ workspaceId, expectedSandboxUid }))).toMatchObject({
      reason: "WORKSPACE_REPLACED",
      code: "Aborted",
    });
    expect((await open(workspaceId)).identity.sandboxUid).toBe(next.identity.sandboxUid);
  });

  it("is not one that is being deleted", async () => {
    const { workspaces } = service;
    const workspaceId = "going";
    const { identity } = await open(workspaceId);
    await holdObject(workspaceId, true);
    await objects.deleteNamespacedCustomObject(sandboxOf(workspaceId));
    const calls = [
      () => workspaces.openWorkspace({ workspaceId }),
      () => workspaces.openWorkspace({ workspaceId, create: CreatePolicy.MUST_EXIST }),
      () => shell(service, workspaceId, "true"),
    ];
    for (const call of calls) {
      expect(await reasonOf(call())).toMatchObject({ reason: "WORKSPACE_DELETING", code: "FailedPrecondition" });
    }
    const { workspace } = await workspaces.getWorkspace({ workspaceId });
    expect([workspace?.state, workspace?.identity?.sandboxUid]).toEqual([WorkspaceState.DELETING, identity.sandboxUid]);
    await holdObject(workspaceId, false);
  });
});

describe("B81 a destroy", () => {
  const destroy = (workspaceId: string, deleteDisk: boolean, more: object = {}) =>
    service.workspaces.destroyWorkspace({ workspaceId, deleteDisk, ...more });

  it("keeps the disk where nobody asks for its end, once and twice, and all is there again", async () => {
    const workspaceId = "kept";
    const { identity } = await open(workspaceId);
    await shell(service, workspaceId, "echo kept > note");
    for (let time = 0; time < 2; time += 1) {
      expect((await destroy(workspaceId, false)).workspace?.state).toBe(WorkspaceState.SUSPENDED);
      const remains = await remainsOf(workspaceId);
      expect(remains).toEqual(expect.arrayContaining(["object", "claim"]));
      expect(remains).not.toContain("pod"); // One that has ended may still be there. (L25)
    }
    const again = await open(workspaceId);
    expect(again.identity.claimUids).toEqual(identity.claimUids);
    expect((await shell(service, workspaceId, "cat note")).stdout).toBe("kept\n");
  });

  it.each(["that runs", "that is suspended"])(
    "ends one %s with its disk, seen gone by its answer, and again",
    async (how) => {
      const workspaceId = how.replaceAll(" ", "-");
      await open(workspaceId);
      if (how === "that is suspended") await service.workspaces.suspendWorkspace({ workspaceId });
      for (let time = 0; time < 2; time += 1) {
        expect((await destroy(workspaceId, true)).workspace).toBeUndefined();
        expect(await remainsOf(workspaceId)).toEqual([]);
      }
    },
  );

  it.each([
    ["409", [{ t: "fail", code: 409, reason: "Conflict" }]],
    ["500, then 200", [{ t: "fail", code: 500 }]],
    [
      "503 twice",
      [
        { t: "fail", code: 503 },
        { t: "fail", code: 503 },
      ],
    ],
    ["an answer that is lost, done", [{ t: "applyThenDrop" }]],
    ["an answer that is lost, not done", [{ t: "dropUnapplied" }]],
    ["a 404 that is not true", [{ t: "fail", code: 404, reason: "NotFound" }]],
  ])("is done, or not said to be done, where its delete meets %s", async (what, actions) => {
    const workspaceId = `meets-${what.replaceAll(/[^a-z0-9]+/g, "-")}`;
    await open(workspaceId);
    for (const action of actions) {
      const match = { by: "client", verb: "delete", resource: "sandboxes" };
      await faults("add", JSON.stringify({ match, action, count: 1 }));
    }
    const outcome = await destroy(workspaceId, true).then(
      () => "done",
      async (error: unknown) => (await reasonOf(Promise.reject(error))).reason,
    );
    // Refused: by an answer that says so, though nothing had moved.
    expect(outcome).toBe(/^409|^a 404/.test(what) ? "CLUSTER_WRITE_REFUSED" : "done");
    if (outcome !== "done") {
      expect(await remainsOf(workspaceId)).toEqual(["object", "pod", "claim"]);
      await destroy(workspaceId, true);
    }
    expect(await remainsOf(workspaceId)).toEqual([]);
  });

  it("is not done while its disk stands, says what is left, and takes it up when it is asked again", async () => {
    const workspaceId = "held";
    await open(workspaceId);
    await holdClaims(workspaceId, true);
    const failure = await reasonOf(destroy(workspaceId, true, { stopTimeout: { seconds: 3n, nanos: 0 } }));
    expect(failure).toMatchObject({ reason: "DELETE_UNCONFIRMED", code: "DeadlineExceeded" });
    expect(failure.message).toContain(Object.keys(await claimsOf(workspaceId))[0]);
    const again = destroy(workspaceId, true);
    await holdClaims(workspaceId, false);
    await again;
    expect(await remainsOf(workspaceId)).toEqual([]);
  });
});
