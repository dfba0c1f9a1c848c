import { createHash } from "node:crypto";
import { Origin, WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Clients, clientsOf, dataFolder, reasonOf, startCluster, startServiceOn } from "./harness.ts";
import { roundRobin } from "./round-robin.ts";

let folder: Awaited<ReturnType<typeof dataFolder>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
let replicas: Awaited<ReturnType<typeof startServiceOn>>[];
let proxy: Awaited<ReturnType<typeof roundRobin>>;
let clients: Clients;

beforeAll(async () => {
  folder = await dataFolder();
  cluster = await startCluster(folder.path);
  replicas = await Promise.all([startServiceOn(cluster.flags), startServiceOn(cluster.flags)]);
  proxy = await roundRobin(replicas.map(({ target }) => target));
  clients = clientsOf(proxy.target);
}, 60_000);

afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
  await Promise.all((replicas ?? []).map((replica) => replica.stop()));
  await cluster?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
}, 60_000);

/** How each call of the tour carries its caller's word. */
interface Word {
  readonly open: object;
  readonly call: object;
}

const unfenced: Word = { open: {}, call: {} };
const fenced = (epoch: bigint): Word => ({ open: { fencing: { case: "epoch", value: epoch } }, call: { epoch } });

async function shell(workspaceId: string, line: string, { call }: Word): Promise<string> {
  const done = await clients.executions.runCommand({ workspaceId, command: "sh", args: ["-c", line], ...call });
  return Buffer.from(done.stdout).toString("utf8");
}

/** The whole tour, each call by whichever replica comes next. */
async function tour(workspaceId: string, word: Word): Promise<void> {
  const { workspaces, executions, files, inventory } = clients;
  const opened = await workspaces.openWorkspace({ workspaceId, ...word.open });
  expect(opened.workspace?.origin).toBe(Origin.CREATED);
  expect(await shell(workspaceId, "echo kept > note; echo out", word)).toBe("out\n");
  expect(await shell(workspaceId, "cat note", word)).toBe("kept\n");

  let text = "";
  let next = 0n;
  const command = { workspaceId, command: "sh", args: ["-c", "seq 20000"], ...word.call };
  for await (const { event } of executions.execute(command)) {
    if (event.case !== "output") continue;
    expect(event.value.offset).toBe(next);
    next += BigInt(event.value.data.length);
    text += Buffer.from(event.value.data).toString("latin1");
  }
  expect(text).toBe(Array.from({ length: 20_000 }, (_, at) => `${at + 1}\n`).join(""));

  const data = Buffer.from("by one and read by the other\n");
  await files.putFile({ start: { workspaceId, path: "file", ...word.call }, data });
  expect((await files.statFile({ workspaceId, path: "file" })).file?.size).toBe(BigInt(data.length));
  expect(await shell(workspaceId, "cat file", word)).toBe(data.toString());

  const suspended = await workspaces.suspendWorkspace({ workspaceId, ...word.call });
  expect(suspended.workspace?.state).toBe(WorkspaceState.SUSPENDED);
  // Either replica refuses what follows, whichever of them held a handle.
  for (let call = 0; call < 2; call += 1) {
    expect((await reasonOf(shell(workspaceId, "true", word))).reason).toBe("WORKSPACE_SUSPENDED");
  }
  const resumed = await workspaces.resumeWorkspace({ workspaceId, ...word.open });
  expect(resumed.workspace?.state).toBe(WorkspaceState.RUNNING);
  for (let call = 0; call < 3; call += 1) expect(await shell(workspaceId, "cat note", word)).toBe("kept\n");

  const { workspaces: rows } = await inventory.listWorkspaces({ workspaceIdPrefix: workspaceId });
  expect(rows.map((row) => row.workspaceId)).toEqual([workspaceId]);
  await workspaces.destroyWorkspace({ workspaceId, deleteDisk: true, ...word.call });
  for (let call = 0; call < 2; call += 1) {
    expect((await reasonOf(shell(workspaceId, "true", word))).reason).toBe("WORKSPACE_NOT_FOUND");
    expect((await reasonOf(workspaces.getWorkspace({ workspaceId }))).reason).toBe("WORKSPACE_NOT_FOUND");
  }
}

describe("two replicas behind a proxy that gives each call to the next of them", () => {
  it.each([0, 1])("run the whole tour, unfenced (from replica %i)", async (shift) => {
    for (let call = 0; call < shift; call += 1) await clients.server.getServerInfo({});
    await tour(`tour-${shift}`, unfenced);
    expect(proxy.served.every((calls) => calls > 5)).toBe(true);
  });

  it.each([0, 1])("run the whole tour, fenced (from replica %i)", async (shift) => {
    for (let call = 0; call < shift; call += 1) await clients.server.getServerInfo({});
    await tour(`fenced-${shift}`, fenced(9n));
  });

  it("12 tours at once, fenced and unfenced", async () => {
    const words = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? unfenced : fenced(BigInt(at))));
    await Promise.all(words.map((word, at) => tour(`many-${String.fromCharCode(97 + at)}`, word)));
  });

  it("a terminal typed into through both in turn receives every byte once, in order", async () => {
    const workspaceId = "typed";
    const { workspaces, sessions } = clients;
    await workspaces.openWorkspace({ workspaceId });
    const lines = Array.from({ length: 200 }, (_, at) => `line ${at} ${"x".repeat(at % 50)}\n`);
    const bytes = Buffer.from(lines.join(""));
    const line = `stty raw -echo; printf ready; head -c ${bytes.length} | sha256sum`;
    await sessions.openTerminal({
      workspaceId,
      sessionId: "t",
      program: { command: "/bin/sh", args: ["-c", line], size: { columns: 80, rows: 24 } },
    });
    let attachmentId = "";
    let sequence = 0n;
    let text = "";
    const ready = Promise.withResolvers<void>();
    const reading = (async () => {
      for await (const { event } of sessions.attachTerminal({ workspaceId, sessionId: "t" })) {
        if (event.case === "attached") {
          ({ attachmentId } = event.value);
          sequence = event.value.nextInputSequence;
        }
        if (event.case === "data") text += Buffer.from(event.value.data).toString("latin1");
        if (text.includes("ready")) ready.resolve();
      }
    })();
    await ready.promise;
    // Four under way at once, and every third of them sent twice, as a client does that has lost an answer.
    const send = (at: number): Promise<unknown> => {
      const write = {
        workspaceId,
        sessionId: "t",
        attachmentId,
        sequence: sequence + BigInt(at),
        data: Buffer.from(lines[at] ?? ""),
      };
      const once = sessions.writeTerminal(write);
      return at % 3 === 0 ? Promise.all([once, sessions.writeTerminal(write)]) : once;
    };
    for (let at = 0; at < lines.length; at += 4) await Promise.all([0, 1, 2, 3].map((more) => send(at + more)));
    await reading;
    expect(text).toContain(createHash("sha256").update(bytes).digest("hex"));
  });
});
