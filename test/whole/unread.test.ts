import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { ExecutionState, OnDisconnect } from "@holdfast/api/holdfast/v1/execution_pb";
import { AttachMode, type AttachTerminalResponse } from "@holdfast/api/holdfast/v1/session_pb";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { dataFolder, eventually, processesNaming, shell, startCluster, startServiceOn } from "./harness.ts";

// Output that nobody reads: the service is a process of its own, so that what is measured is its memory and not this one's.
const workspaceId = "unread";
let folder: Awaited<ReturnType<typeof dataFolder>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
let service: Awaited<ReturnType<typeof startServiceOn>>;
let agentPid: number;

beforeAll(async () => {
  folder = await dataFolder();
  cluster = await startCluster(folder.path);
  service = await startServiceOn(cluster.flags);
  const { workspace } = await service.workspaces.openWorkspace({ workspaceId });
  const pids = await processesNaming(`HOLDFAST_AGENT_TOKEN=${workspace?.identity?.podUid}`);
  agentPid = pids.find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("main.mjs")) ?? 0;
}, 60_000);

afterAll(async () => {
  await service?.stop();
  await cluster?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
}, 60_000);

function residentMib(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}
const resident = () => ({ service: residentMib(service.child.pid), agent: residentMib(agentPid) });

/** Reads a terminal to its end: what came, and what was told as missing. */
async function readOn(events: AsyncIterator<AttachTerminalResponse>) {
  const read = { bytes: 0n, gaps: 0n, next: 0n };
  for (let next = await events.next(); !next.done; next = await events.next()) {
    const { event } = next.value;
    if (event.case === "exited") read.next = event.value.nextOffset;
    else if (event.case === "gap") read.gaps += event.value.to - event.value.from;
    else if (event.case === "data") read.bytes += BigInt(event.value.data.length);
  }
  return read;
}

it("B30 a viewer that stands still slows neither the program nor who reads, costs the service nothing, and is told what it missed", async () => {
  const { sessions } = service;
  const run = async (sessionId: string, isWatched: boolean) => {
    const line = `until [ -e ${sessionId} ]; do sleep 0.01; done; seq 1 3000000`;
    await sessions.openTerminal({ workspaceId, sessionId, program: { command: "sh", args: ["-c", line] } });
    const attach = (mode: AttachMode) =>
      sessions.attachTerminal({ workspaceId, sessionId, mode })[Symbol.asyncIterator]();
    const still = isWatched ? attach(AttachMode.OBSERVE) : undefined;
    await still?.next(); // And never again, until the program is over.
    const reader = attach(AttachMode.EXCLUSIVE);
    await reader.next();
    const before = resident();
    const beganMs = performance.now();
    await shell(service, workspaceId, `touch ${sessionId}`);
    const read = await readOn(reader);
    const tookMs = performance.now() - beganMs;
    expect(read.bytes + read.gaps).toBe(read.next);
    const moreMib = resident().service - before.service;
    return { tookMs, moreMib, next: read.next, still };
  };
  await run("warm", false);
  const [alone, watched] = [await run("alone", false), await run("watched", true)];
  const again = [await run("alone-again", false), await run("watched-again", true)] as const;
  const ratio = Math.min(watched.tookMs, again[1].tookMs) / Math.min(alone.tookMs, again[0].tookMs);
  expect(ratio).toBeLessThanOrEqual(1.5);
  expect(Math.min(watched.moreMib, again[1].moreMib)).toBeLessThan(16);
  for (const { still, next } of [watched, again[1]]) {
    if (!still) throw new Error("nobody stood still");
    const late = await readOn(still);
    expect([late.bytes + late.gaps, late.next]).toEqual([next, next]);
    expect(late.gaps).toBeGreaterThan(0n);
  }
});

it("B39 an attach that never reads costs little while its program writes 2 GB, and other calls go on", async () => {
  const { executions } = service;
  const ids = { workspaceId, executionId: "much" };
  const line = "until [ -e much ]; do sleep 0.01; done; head -c 2000000000 /dev/zero";
  const starter = executions
    .execute({ ...ids, command: "sh", args: ["-c", line], onDisconnect: OnDisconnect.DETACH })
    [Symbol.asyncIterator]();
  await starter.next();
  const leaving = new AbortController();
  const unread = executions.attachExecution(ids, { signal: leaving.signal })[Symbol.asyncIterator]();
  await unread.next();
  await starter.return?.();
  const before = resident();
  const most = { ...before };
  await shell(service, workspaceId, "touch much");
  const latenciesMs: number[] = [];
  const failed: unknown[] = [];
  const callOfAnother = async () => {
    const beganMs = performance.now();
    const { execution } = await executions.getExecution(ids).catch((error) => {
      failed.push(error);
      throw error;
    });
    latenciesMs.push(performance.now() - beganMs);
    const now = resident();
    most.service = Math.max(most.service, now.service);
    most.agent = Math.max(most.agent, now.agent);
    return execution;
  };
  await expect
    .poll(callOfAnother, { interval: 10, timeout: 200_000 })
    .toMatchObject({ state: ExecutionState.EXITED, outputBytes: 2_000_000_000n });
  expect(failed).toEqual([]);
  expect(most.service - before.service).toBeLessThan(64);
  expect(most.agent - before.agent).toBeLessThan(64);
  latenciesMs.sort((one, other) => one - other);
  expect(latenciesMs[Math.floor(latenciesMs.length * 0.99)]).toBeLessThan(1_000);
  leaving.abort();
  await unread.next().catch(() => undefined); // Its own end.
});

it("B59 endless output that nobody reads costs a ring; a service that is started anew is ready at once, and reads it with a gap", async () => {
  const ids = { workspaceId, sessionId: `endless-${randomUUID().slice(0, 8)}` };
  const before = resident();
  await service.sessions.startDetached({ ...ids, command: "yes" });
  onTestFinished(() => service.sessions.killSession(ids).then(() => undefined));
  const written = async () =>
    (await service.sessions.listSessions({ workspaceId })).sessions.find(({ sessionId }) => sessionId === ids.sessionId)
      ?.nextOffset ?? 0n;
  await eventually(60_000, async () => ((await written()) > 1_000_000_000n ? true : undefined));
  expect(resident().service - before.service).toBeLessThan(64);
  expect(resident().agent - before.agent).toBeLessThan(64);
  await service.kill();
  const beganMs = performance.now();
  service = await startServiceOn(cluster.flags);
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  const leaving = new AbortController();
  const request = { ...ids, mode: AttachMode.OBSERVE };
  const events = service.sessions.attachTerminal(request, { signal: leaving.signal })[Symbol.asyncIterator]();
  expect((await events.next()).value?.event.case).toBe("attached");
  const gap = (await events.next()).value?.event;
  expect(gap?.case).toBe("gap");
  if (gap?.case === "gap") expect([gap.value.from, gap.value.to > 999_000_000n]).toEqual([0n, true]);
  leaving.abort();
  await events.next().catch(() => undefined); // Its own end.
});
