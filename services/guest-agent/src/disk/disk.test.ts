import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { DiskService, QuiesceScope } from "@holdfast/api/holdfast/guest/v1/disk_pb";
import { FileService } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { describe, expect, it, onTestFinished } from "vitest";
import { readProcess } from "../execution/processes.ts";
import {
  type AgentProcess,
  type AgentRun,
  agentProcess,
  eventually,
  pidOf,
  soon,
} from "../testing/agent-process.testing.ts";
import { refusalOf, script } from "../testing/followed-execution.testing.ts";

const { quiesce, releaseQuiesce, flush } = DiskService.method;
const ms = (value: number) => ({ seconds: BigInt(Math.floor(value / 1_000)), nanos: (value % 1_000) * 1_000_000 });

const quiesced = (agent: AgentProcess, order: { grace?: number; hold?: number; epoch?: bigint } = {}) =>
  agent.link.call(
    quiesce,
    {
      ...(order.grace === undefined ? {} : { grace: ms(order.grace) }),
      ...(order.hold === undefined ? {} : { hold: ms(order.hold) }),
    },
    { within: soon(30_000), ...(order.epoch === undefined ? {} : { epoch: order.epoch }) },
  );

describe("a quiesce", () => {
  it("G23 stops what commands run and left behind, names them without a command line, and spares agent and strangers", async () => {
    const agent = await agentProcess();
    const stranger = spawn("sleep", ["100"], { stdio: "ignore", detached: true });
    onTestFinished(() => {
      stranger.kill("SIGKILL");
    });
    const run = await script(
      agent.link,
      "run",
      "setsid sh -c 'sleep 8765 & echo inner; wait' & echo outer; exec sleep 1234",
    );
    await run.until(() => run.text.includes("inner") && run.text.includes("outer"));
    const report = await quiesced(agent);
    expect(report).toMatchObject({ scope: QuiesceScope.OWNED_SESSIONS, notReached: [], holdId: "" });
    expect(report.stoppedCount).toBe(3);
    // Names, signals and numbers alone: of "sleep 8765" the 8765 is nobody's business.
    for (const { name, lastSignal } of report.stopped)
      expect([name, lastSignal].join()).toMatch(/^(sh|sleep),SIGTERM$/);
    expect(await run.end()).toBe("SIGTERM");
    expect(readProcess(pidOf(stranger))?.state).toBe("S");
    const again = await script(agent.link, "again", "echo on");
    expect(await again.end()).toBe(0);
    expect((await quiesced(agent)).stopped).toEqual([]);
  });

  it("G23 kills what ignores SIGTERM after the grace, which is at most 4,999 ms", async () => {
    const agent = await agentProcess();
    const run = await script(agent.link, "deaf", "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    await run.until(() => run.text.includes("ready"));
    const startedAt = performance.now();
    const report = await quiesced(agent, { grace: 100 });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(100);
    expect(report.stopped.find(({ name }) => name === "sh")?.lastSignal).toBe("SIGKILL");
    expect(await run.end()).toBe("SIGKILL");
    await expect(quiesced(agent, { grace: 5_000 })).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    await expect(quiesced(agent, { hold: 600_001 })).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
      metadata: { field: "hold" },
    });
    expect((await quiesced(agent, { hold: 600_000 })).holdId).not.toBe("");
  });

  it("G24 held, lets nothing start while files are read and written, until it is released", async () => {
    const agent = await agentProcess();
    const { holdId } = await quiesced(agent, { hold: 60_000 });
    expect(holdId).not.toBe("");
    expect(await refusalOf(script(agent.link, "new", "true"))).toMatchObject({ reason: "AGENT_RETIRING" });
    expect(await agent.link.call(AgentService.method.health, {}, { within: soon() })).toMatchObject({
      serving: true,
      quiet: true,
    });
    await agent.link.call(FileService.method.makeDirectory, { path: "made" }, { within: soon() });
    expect(existsSync(join(agent.root, "made"))).toBe(true);
    expect(await agent.link.call(AgentService.method.probe, {}, { within: soon() })).toMatchObject({});
    expect(await agent.link.call(releaseQuiesce, { holdId }, { within: soon() })).toMatchObject({ released: true });
    expect(await agent.link.call(releaseQuiesce, { holdId }, { within: soon() })).toMatchObject({ released: false });
    expect(await (await script(agent.link, "new", "true")).end()).toBe(0);
  });

  it("G5a a superseded holder stops nothing: its quiesce is withdrawn, what it froze goes on, and its hold is over", async () => {
    const agent = await agentProcess();
    const run = await script(
      agent.link,
      "kept",
      "trap '' TERM; echo ready; while :; do date >> mark; sleep 0.05; done",
    );
    await run.until(() => run.text.includes("ready"));
    const stopping = quiesced(agent, { grace: 4_999 });
    const refused = expect(stopping).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    // It is under way once nothing can be started any more.
    await until(async () => (await agent.link.call(AgentService.method.health, {}, { within: soon() })).quiet);
    await agent.link.call(AgentService.method.fence, { epoch: 7n }, { within: soon() });
    await refused;
    const size = (): number => readFileSync(join(agent.root, "mark")).length;
    const before = size();
    await eventually(() => size() > before + 200);
    await expect(quiesced(agent)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    await quiesced(agent, { grace: 50, hold: 60_000, epoch: 7n });
    await agent.link.call(AgentService.method.fence, { epoch: 8n }, { within: soon() });
    expect((await agent.link.call(AgentService.method.health, {}, { within: soon() })).quiet).toBe(false);
  });
});

const mayUnshare = await new Promise<boolean>((resolve) => {
  const child = spawn("unshare", ["--pid", "--fork", "--mount-proc", "true"], { stdio: "ignore" });
  child.once("error", () => resolve(false));
  child.once("exit", (code) => resolve(code === 0));
});

describe.skipIf(!mayUnshare)("in a pod's own pid namespace (skipped where the kernel allows none)", () => {
  it("G23 reaches every process of the pod but PID 1 and the agent, also what the agent never started", async () => {
    const agent = await agentProcess({}, undefined, pod(""));
    const run = await script(agent.link, "see", "cat /proc/*/comm | sort | uniq -c; echo ready; exec sleep 77");
    await run.until(() => run.text.includes("ready"));
    expect(run.text).toMatch(/1 sleep|2 sleep/);
    const report = await quiesced(agent);
    expect(report.scope).toBe(QuiesceScope.PID_NAMESPACE);
    expect(report.stoppedCount).toBe(2);
    expect(report.stopped.map(({ pid }) => Number(pid))).not.toContain(1);
    const after = await script(agent.link, "after", "ls -d /proc/[0-9]* | wc -l");
    expect(await after.end()).toBe(0);
    // PID 1, the agent, the shell, ls and wc.
    expect(Number(after.text.trim())).toBe(5);
  });

  it("G23 a pod that shares its namespace with others stops only what is its own", async () => {
    const agent = await agentProcess({ HOLDFAST_POD: "uid/agent" }, undefined, pod(""));
    const run = await script(agent.link, "own", "echo ready; exec sleep 77");
    await run.until(() => run.text.includes("ready"));
    const report = await quiesced(agent);
    expect(report).toMatchObject({ scope: QuiesceScope.OWNED_SESSIONS, stoppedCount: 1 });
    const others = await script(agent.link, "others", "cat /proc/[0-9]*/comm | grep -c sleep");
    expect(await others.end()).toBe(0);
    expect(others.text.trim()).toBe("1");
  });

  it("G23 lists processes of another uid as not reached, and is no less confirmed", async () => {
    const agent = await agentProcess({}, undefined, {
      ...pod("setpriv --reuid 1001 --regid 1001 --clear-groups"),
      owner: 1001,
    });
    const run = await script(agent.link, "own", "echo ready; trap 'exit 0' TERM; while :; do :; done");
    await run.until(() => run.text.includes("ready"));
    const report = await quiesced(agent);
    expect(report.scope).toBe(QuiesceScope.PID_NAMESPACE);
    expect(report.stopped.map(({ name, lastSignal }) => ({ name, lastSignal }))).toEqual([
      { name: "sh", lastSignal: "SIGTERM" },
    ]);
    expect(report.notReached.map(({ name, lastSignal }) => ({ name, lastSignal }))).toEqual([
      { name: "sleep", lastSignal: "" },
    ]);
  });

  it("G26 a SIGTERM brings the whole pod to rest and writes the disk out before the agent goes", async () => {
    const agent = await agentProcess({}, undefined, pod(""));
    const run = await script(
      agent.link,
      "last",
      "trap 'echo saved > saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
    );
    await run.until(() => run.text.includes("ready"));
    // On this side of the namespace the agent is a child of unshare's child, and the one beside it is the sleep.
    const [init] = childrenOf(agent.pid);
    const served = init === undefined ? undefined : childrenOf(init).find((pid) => readProcess(pid)?.name !== "sleep");
    if (served === undefined) throw new Error("the agent is not found in its pod");
    process.kill(served, "SIGTERM");
    expect(await run.end()).toBe(0);
    expect(await agent.exited).toBe(0);
    expect(readFileSync(join(agent.root, "saved"), "utf8")).toBe("saved\n");
    expect(agent.log()).toMatch(/stopping: [2-9] processes ended/);
  });
});

const childrenOf = (pid: number): number[] =>
  readdirSync("/proc")
    .map(Number)
    .filter((entry) => Number.isInteger(entry) && readProcess(entry)?.parent === pid);

/** A pid namespace. Beside the agent its PID 1 runs something that the agent knows nothing of. */
function pod(before: string): AgentRun {
  const init = `setsid sleep 1000 & ${before} "$0" "$@" & wait $!`;
  return { around: ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", init] };
}

describe("a flush", () => {
  it("G25 is confirmed by the kernel, and tells how long it took", async () => {
    const agent = await agentProcess();
    writeFileSync(join(agent.root, "data"), Buffer.alloc(1_000_000, 7));
    const { took } = await agent.link.call(flush, {}, { within: soon() });
    expect(took).toBeDefined();
    const longest = { timeout: { seconds: 600n } };
    expect((await agent.link.call(flush, longest, { within: soon() })).took).toBeDefined();
    const longer = { timeout: { seconds: 600n, nanos: 1_000_000 } };
    await expect(agent.link.call(flush, longer, { within: soon() })).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
      metadata: { field: "timeout" },
    });
  });

  it("G25 is a missing feature where the C library cannot be called, and everything else is served", async () => {
    const { directory } = await import("../../bundle.ts").then(({ bundleGuestAgent }) => bundleGuestAgent());
    const bare = join(directory, "..", `bare-${process.pid}`);
    mkdirSync(bare, { recursive: true });
    onTestFinished(() => rmSync(bare, { recursive: true }));
    writeFileSync(join(bare, "main.mjs"), readFileSync(join(directory, "main.mjs")));
    const agent = await agentProcess({}, undefined, { entry: join(bare, "main.mjs") });
    const { features } = await agent.link.call(AgentService.method.health, {}, { within: soon() });
    expect(features).not.toContain("flush");
    expect(features).toContain("quiesce");
    await expect(agent.link.call(flush, {}, { within: soon() })).rejects.toMatchObject({
      reason: "GUEST_FEATURE_MISSING",
    });
  });
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
