import { Origin, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { OperatingMode } from "@holdfast/api/holdfast/v1/inventory_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dataFolder, reasonOf, shell, startCluster, startServiceOn } from "./harness.ts";

type Replica = Awaited<ReturnType<typeof startServiceOn>>;

let folder: Awaited<ReturnType<typeof dataFolder>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
/** Two services on one cluster. */
let a: Replica;
let b: Replica;

beforeAll(async () => {
  folder = await dataFolder();
  cluster = await startCluster(folder.path);
  [a, b] = await Promise.all([startServiceOn(cluster.flags), startServiceOn(cluster.flags)]);
}, 60_000);

afterAll(async () => {
  await Promise.all([a?.stop(), b?.stop()]);
  await cluster?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
}, 60_000);

const under = (value: number) => ({ case: "epoch", value: BigInt(value) }) as const;
const takeOver = { case: "takeOver", value: true } as const;

/** Runs a shell line under an epoch, in the field. */
async function run({ executions }: Replica, workspaceId: string, line: string, epoch?: number): Promise<string> {
  const carried = epoch === undefined ? {} : { epoch: BigInt(epoch) };
  const done = await executions.runCommand({ workspaceId, command: "sh", args: ["-c", line], ...carried });
  return Buffer.from(done.stdout).toString("utf8");
}

describe("two replicas and one fence", () => {
  it("L20 take_over on one refuses the other's holder, inside the guest too, and ends none of its programs", async () => {
    const workspaceId = "held";
    const opened = await a.workspaces.openWorkspace({ workspaceId, fencing: under(4) });
    expect(opened.workspace).toMatchObject({ origin: Origin.CREATED, holderEpoch: 4n });
    expect(await run(a, workspaceId, "echo one", 4)).toBe("one\n");

    const command = { command: "sh", args: ["-c", "echo up; until [ -e go ]; do sleep 0.05; done; echo done"] };
    const followed = a.executions.execute({ workspaceId, ...command, epoch: 4n })[Symbol.asyncIterator]();
    expect((await followed.next()).value?.event.case).toBe("started");
    expect((await followed.next()).value?.event.case).toBe("output");

    const taken = await b.workspaces.openWorkspace({ workspaceId, fencing: takeOver });
    expect(taken.workspace).toMatchObject({ origin: Origin.ADOPTED_RUNNING, holderEpoch: 5n });
    expect(taken.workspace?.identity?.podUid).toBe(opened.workspace?.identity?.podUid);

    const superseded = { reason: "HOLDER_EPOCH_SUPERSEDED", code: "FailedPrecondition" };
    expect(await reasonOf(run(a, workspaceId, "touch lost", 4))).toMatchObject({
      ...superseded,
      metadata: { operation: "RunCommand", workspace_id: workspaceId, mine: "4", stored: "5" },
    });
    expect((await reasonOf(run(a, workspaceId, "touch lost"))).reason).toBe("HOLDER_EPOCH_REQUIRED");
    const write = { start: { workspaceId, path: "lost", epoch: 4n }, data: new Uint8Array([1]) };
    expect(await reasonOf(a.files.putFile(write))).toMatchObject(superseded);
    expect(await reasonOf(run(b, workspaceId, "touch lost", 6))).toMatchObject({
      reason: "HOLDER_EPOCH_NOT_TAKEN",
      metadata: { mine: "6", stored: "5" },
    });
    expect(await reasonOf(a.workspaces.suspendWorkspace({ workspaceId, epoch: 4n }))).toMatchObject(superseded);
    const list = await a.inventory.listWorkspaces({});
    expect(list.workspaces).toMatchObject([{ workspaceId, holderEpoch: 5n }]);

    // The new number holds through either replica; reads need none.
    expect(await run(a, workspaceId, "ls", 5)).toBe("");
    await b.files.putFile({ start: { workspaceId, path: "go", epoch: 5n }, data: new Uint8Array() });
    const { file } = await a.files.statFile({ workspaceId, path: "go" });
    expect(file?.path).toBe("go");
    let last: string | undefined;
    for (let next = await followed.next(); !next.done; next = await followed.next()) last = next.value.event.case;
    expect(last).toBe("exited");

    const { workspace } = await a.workspaces.suspendWorkspace({ workspaceId, epoch: 5n });
    expect(workspace).toMatchObject({ state: WorkspaceState.SUSPENDED, holderEpoch: 5n });
    expect(workspace?.transition?.byEpoch).toBe(5n);
  });

  it("L20 metadata holdfast-epoch stands for the field on every call of a client", async () => {
    const workspaceId = "by-metadata";
    const headers = { "holdfast-epoch": "7" };
    const { workspace } = await a.workspaces.openWorkspace({ workspaceId }, { headers });
    expect(workspace?.holderEpoch).toBe(7n);
    const ran = await b.executions.runCommand({ workspaceId, command: "true" }, { headers });
    expect(ran.exited?.status).toEqual({ case: "exitCode", value: 0 });
    await b.files.makeDirectory({ workspaceId, path: "d" }, { headers });
    const differs = a.workspaces.suspendWorkspace({ workspaceId, epoch: 8n }, { headers });
    expect(await reasonOf(differs)).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "epoch" } });
    const takes = a.workspaces.resumeWorkspace({ workspaceId, fencing: takeOver }, { headers });
    expect(await reasonOf(takes)).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "take_over" } });
    const ignores = a.workspaces.destroyWorkspace({ workspaceId, ignoreFence: true }, { headers });
    expect(await reasonOf(ignores)).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "ignore_fence" } });
    const beyond = a.workspaces.getWorkspace({ workspaceId }, { headers: { "holdfast-epoch": "9007199254740992" } });
    expect((await reasonOf(beyond)).reason).toBe("INVALID_REQUEST");
    await a.inventory.suspendWorkspace({ workspaceId }, { headers });
    await b.inventory.deleteWorkspace({ workspaceId, ignoreFence: true });
    expect((await reasonOf(a.workspaces.getWorkspace({ workspaceId }))).reason).toBe("WORKSPACE_NOT_FOUND");
  });

  it("L20 take-overs that race through both replicas get as many numbers, and the guest stands at the last", async () => {
    const workspaceId = "raced";
    await a.workspaces.openWorkspace({ workspaceId });
    const calls = Array.from({ length: 8 }, (_, at) =>
      (at % 2 ? a : b).workspaces.openWorkspace({ workspaceId, fencing: takeOver }).then(
        ({ workspace }) => workspace?.holderEpoch,
        async (error: unknown) => (await reasonOf(Promise.reject(error))).reason,
      ),
    );
    const outcomes = await Promise.all(calls);
    const numbers = outcomes.filter((outcome) => typeof outcome === "bigint");
    expect(outcomes.filter((outcome) => typeof outcome === "string" && outcome !== "HOLDER_EPOCH_SUPERSEDED")).toEqual(
      [],
    );
    expect(new Set(numbers).size).toBe(numbers.length);
    const { workspace } = await a.inventory.getWorkspaceSummary({ workspaceId });
    expect(workspace?.holderEpoch).toBe(8n);
    expect(await run(a, workspaceId, "echo on", 8)).toBe("on\n");
    expect((await reasonOf(run(b, workspaceId, "echo on", 7))).reason).toBe("HOLDER_EPOCH_SUPERSEDED");
  });

  it("a suspend on one and a resume on the other leave the first with nothing false: it suspends, and runs commands, anew", async () => {
    const workspaceId = "both";
    await a.workspaces.openWorkspace({ workspaceId });
    await shell(a, workspaceId, "echo kept > note");
    await a.workspaces.suspendWorkspace({ workspaceId });
    const resumed = await b.workspaces.openWorkspace({ workspaceId });
    expect(resumed.workspace?.origin).toBe(Origin.RESUMED);
    expect((await shell(a, workspaceId, "cat note")).stdout).toBe("kept\n");

    await b.workspaces.suspendWorkspace({ workspaceId });
    await b.workspaces.resumeWorkspace({ workspaceId });
    const again = await a.workspaces.suspendWorkspace({ workspaceId });
    expect(again.workspace?.state).toBe(WorkspaceState.SUSPENDED);
    const seen = await b.inventory.getWorkspaceSummary({ workspaceId });
    expect(seen.workspace?.mode).toBe(OperatingMode.SUSPENDED);
    expect((await reasonOf(shell(b, workspaceId, "cat note"))).reason).toBe("WORKSPACE_SUSPENDED");
  });
});
