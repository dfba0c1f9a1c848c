import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { DiskService } from "@holdfast/api/holdfast/guest/v1/disk_pb";
import { EndCause, ExecutionService, OnDisconnect } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { SessionService } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { sessionEnvironmentsMaxBytes } from "@holdfast/contract";
import type { GuestLink } from "@holdfast/guest-link";
import { describe, expect, it, onTestFinished } from "vitest";
import { type AgentProcess, agentProcess, soon } from "../testing/agent-process.testing.ts";
import {
  attach,
  cancel,
  type FollowedExecution,
  refusalOf,
  script,
  start,
} from "../testing/followed-execution.testing.ts";
import { attachTo, openScript, openTerminal } from "../testing/followed-session.testing.ts";
import { canHoldPrograms, heldProgram } from "../testing/held-program.testing.ts";
import { readProcess } from "./processes.ts";

const { fence, health } = AgentService.method;
const detached = { onDisconnect: OnDisconnect.DETACH };

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-held-start-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const ask = (link: GuestLink) => link.call(health, {}, { within: soon() });
const raise = (link: GuestLink, epoch: bigint) => link.call(fence, { epoch }, { within: soon(30_000) });

/** Whether it has settled, as of a question and its answer later. */
async function isSettled(agent: AgentProcess, call: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  call.then(settle, settle);
  await ask(agent.link);
  await ask(agent.link);
  return settled;
}

const possible = await canHoldPrograms();

describe.runIf(possible)("while the kernel does not begin a program (skipped where it gives no leases)", () => {
  it("terminals echo, and everything but other starts is answered", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "echo", "stty raw -echo; echo ready; exec cat");
    const terminal = await attachTo(agent.link, "echo");
    await terminal.until(() => terminal.text.startsWith("ready"));
    const held = await heldProgram("exit 3");
    const run = await start(agent.link, "held", { command: held.path });
    await held.reached;
    for (const key of "held") {
      const before = terminal.position;
      await terminal.type(key);
      await terminal.until(() => terminal.position > before);
    }
    expect(await ask(agent.link)).toMatchObject({ runningExecutions: 1, runningSessions: 1 });
    const next = await script(agent.link, "next", "echo next");
    expect(await isSettled(agent, run.over)).toBe(false);
    expect([run.started, next.started]).toEqual([undefined, undefined]);
    held.release();
    expect([await run.end(), await next.end()]).toEqual([3, 0]);
  });

  it("a terminal that is being opened holds no other up", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "echo", "stty raw -echo; echo ready; exec cat");
    const terminal = await attachTo(agent.link, "echo");
    const held = await heldProgram("echo held; read line");
    const opening = openTerminal(agent.link, "held", { command: held.path });
    await held.reached;
    await terminal.until(() => terminal.text.startsWith("ready"));
    await terminal.type("x");
    await terminal.until(() => terminal.text.endsWith("x"));
    held.release();
    await opening;
    const opened = await attachTo(agent.link, "held");
    await opened.until(() => opened.text.includes("held"));
  });

  it("a session that is being opened is listed, and a kill of it waits until it can be killed", async () => {
    const { link } = await agentProcess();
    const held = await heldProgram("exec sleep 60");
    const opening = openTerminal(link, "held", { command: held.path });
    await held.reached;
    const { listSessions, killSession } = SessionService.method;
    const listed = await link.call(listSessions, {}, { within: soon() });
    expect(listed.sessions).toMatchObject([{ sessionId: "held", pid: 0n }]);
    expect(listed.sessions[0]?.exit).toBeUndefined();
    const killed = link.call(killSession, { sessionId: "held" }, { within: soon() });
    killed.catch(() => undefined); // Looked at below.
    held.release();
    await opening;
    expect((await killed).session?.exit?.outcome).toEqual({ case: "signal", value: "SIGKILL" });
  });

  it("a session whose start is refused was never one, and a kill that waited for it says so", async () => {
    const { link } = await agentProcess();
    const held = await heldProgram("exit 0");
    const run = await start(link, "held", { command: held.path });
    await held.reached;
    const opening = openTerminal(link, "none", { command: "sh", env: { LARGE: "x".repeat(200_000) } });
    opening.catch(() => undefined); // Looked at below.
    const { listSessions, killSession } = SessionService.method;
    await expect.poll(async () => (await link.call(listSessions, {}, { within: soon() })).sessions.length).toBe(1);
    const killed = link.call(killSession, { sessionId: "none" }, { within: soon() });
    killed.catch(() => undefined); // Looked at below.
    held.release();
    await expect(opening).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    await expect(killed).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
    expect((await link.call(listSessions, {}, { within: soon() })).sessions).toEqual([]);
    expect(await run.end()).toBe(0);
  });

  it("G6 a second start of its id joins it: one process, one pid", async () => {
    const { link, root } = await agentProcess();
    const held = await heldProgram(`echo x >> ${root}/ran`);
    const one = await start(link, "once", { command: held.path });
    await held.reached;
    const other = await start(link, "once", { command: held.path });
    expect(await refusalOf(script(link, "once", "true"))).toMatchObject({ reason: "EXECUTION_EXISTS" });
    held.release();
    expect([await one.end(), await other.end()]).toEqual([0, 0]);
    expect(other.started?.pid).toBe(one.started?.pid);
    expect(readFileSync(join(root, "ran"), "utf8")).toBe("x\n");
  });

  it("G8 whoever follows a start is told of it once it has begun, or that it came to nothing", async () => {
    const agent = await agentProcess();
    const { link } = agent;
    const held = await heldProgram("exit 0");
    const run = await start(link, "held", { command: held.path });
    await held.reached;
    const refused = await start(link, "none", { command: "true", env: { LARGE: "x".repeat(200_000) } });
    await expect.poll(async () => (await ask(link)).runningExecutions).toBe(2);
    const follower = await attach(link, "none");
    const other = await attach(link, "held");
    await ask(link); // What was sent before has been taken.
    expect(await isSettled(agent, follower.over)).toBe(false);
    held.release();
    expect(await refused.over).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await follower.over).toMatchObject({
      reason: "EXECUTION_NOT_FOUND",
      metadata: { execution_id: "none" },
    });
    expect(follower.started).toBeUndefined();
    expect([await run.end(), await other.end()]).toEqual([0, 0]);
    expect(other.started?.pid).toBe(run.started?.pid);
  });

  it("G5a a raise stands at once, and answers only when the start has settled; its program goes on", async () => {
    const agent = await agentProcess({ HOLDFAST_AGENT_STATE_DIR: directory() });
    await raise(agent.link, 1n);
    const held = await heldProgram("echo ran; exec sleep 60");
    const run = await start(agent.link.under(1), "held", { command: held.path }, detached);
    await held.reached;
    const raised = raise(agent.link, 2n);
    await expect.poll(async () => (await ask(agent.link)).holderEpoch).toBe(2n); // Once it is kept on the disk.
    expect(await isSettled(agent, raised)).toBe(false);
    expect(await refusalOf(script(agent.link.under(1), "late", "true"))).toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
    });
    held.release();
    await raised;
    const { getExecution } = ExecutionService.method;
    const { execution } = await agent.link.call(getExecution, { executionId: "held" }, { within: soon() });
    expect(readProcess(Number(execution?.pid))?.parent).toBe(agent.pid);
    await run.until(() => run.text === "ran\n");
    await cancel(agent.link.under(2), "held");
    expect(await run.end()).toBe("SIGTERM");
  });

  it("G5a what still waits for its turn when another holder comes is judged again at its turn, and not begun", async () => {
    const agent = await agentProcess({ HOLDFAST_AGENT_STATE_DIR: directory() });
    await raise(agent.link, 1n);
    const held = await heldProgram("exec sleep 60");
    await start(agent.link.under(1), "held", { command: held.path }, detached);
    await held.reached;
    const waiting = await script(agent.link.under(1), "waiting", `echo x >> ${agent.root}/ran`);
    const opening = openTerminal(
      agent.link,
      "terminal",
      { command: "sh", args: ["-c", `echo t >> ${agent.root}/ran`] },
      1n,
    );
    const told = opening.catch((error) => error);
    await ask(agent.link); // What was sent before has been taken.
    await expect.poll(async () => (await ask(agent.link)).runningExecutions).toBe(2);
    const raised = raise(agent.link, 2n);
    await expect.poll(async () => (await ask(agent.link)).holderEpoch).toBe(2n);
    held.release();
    await raised;
    expect(await waiting.over).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(await told).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(await (await script(agent.link.under(2), "waiting", "exit 7")).end()).toBe(7); // The id stayed free.
    expect(existsSync(join(agent.root, "ran"))).toBe(false);
  });

  it("G9 a cancel waits for the start and ends what it began", async () => {
    const agent = await agentProcess();
    const held = await heldProgram("exec sleep 60");
    const run = await start(agent.link, "held", { command: held.path });
    await held.reached;
    const cancelled = cancel(agent.link, "held");
    expect(await isSettled(agent, cancelled)).toBe(false);
    held.release();
    await cancelled;
    expect(await run.end()).toBe("SIGTERM");
    expect(run.exited?.cause).toBe(EndCause.CANCELLED);
  });

  it("G9 a cancel of what the kernel does not begin is unconfirmed in time, by name, and ends it once it runs", async () => {
    const agent = await agentProcess();
    const held = await heldProgram("exec sleep 60");
    const run = await start(agent.link, "held", { command: held.path });
    await held.reached;
    await expect(cancel(agent.link, "held")).rejects.toMatchObject({
      reason: "CANCELLATION_UNCONFIRMED",
      metadata: { execution_id: "held", cause: "start-held" },
    });
    held.release();
    expect(await run.end()).toBe("SIGTERM");
    expect(run.exited?.cause).toBe(EndCause.CANCELLED);
  });

  it("G17 a kill of what the kernel does not begin is unconfirmed in time, by name, and ends it once it runs", async () => {
    const { link } = await agentProcess();
    const held = await heldProgram("exec sleep 60");
    const opening = openTerminal(link, "held", { command: held.path });
    await held.reached;
    const { killSession } = SessionService.method;
    await expect(link.call(killSession, { sessionId: "held" }, { within: soon() })).rejects.toMatchObject({
      reason: "CANCELLATION_UNCONFIRMED",
      metadata: { session_id: "held", cause: "start-held" },
    });
    held.release();
    await opening;
    expect(await (await attachTo(link, "held")).end()).toBe("SIGKILL");
  });

  it("G17 a kill that its caller gave up ends it once it runs as well", async () => {
    const { link } = await agentProcess();
    const held = await heldProgram("exec sleep 60");
    const opening = openTerminal(link, "held", { command: held.path });
    await held.reached;
    const { killSession } = SessionService.method;
    const givenUp = link.call(killSession, { sessionId: "held" }, { within: soon(200) });
    await expect(givenUp).rejects.toMatchObject({ name: "DeadlineExceeded" });
    await ask(link); // That it was given up has been taken.
    held.release();
    await opening;
    expect(await (await attachTo(link, "held")).end()).toBe("SIGKILL");
  });

  it("G17 a program whose opener goes while it is being opened ends as soon as it runs; what waits for its turn is not begun", async () => {
    const agent = await agentProcess();
    const { link, root } = agent;
    const { detachSession } = SessionService.method;
    const held = await heldProgram("exec sleep 60");
    const open = (sessionId: string, command: string, args: string[] = []) => {
      const attachmentId = randomUUID();
      const opening = openTerminal(link, sessionId, { command, args, clientBound: true, attachmentId });
      const gone = () => link.call(detachSession, { sessionId, attachmentId, clientClosed: true }, { within: soon() });
      return { opened: opening.catch((error) => error), gone };
    };
    const first = open("first", held.path);
    await held.reached;
    const behind = open("behind", "sh", ["-c", `echo x >> ${root}/ran`]);
    await expect.poll(async () => (await ask(link)).runningSessions).toBe(2);
    await first.gone(); // Answered at once: the kernel has not begun it.
    await behind.gone();
    held.release();
    await first.opened;
    expect(await behind.opened).toMatchObject({ reason: "SESSION_NOT_FOUND" });
    await expect.poll(async () => (await ask(link)).runningSessions).toBe(0);
    expect(await (await attachTo(link, "first")).end()).toBe("SIGKILL");
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  it("G24 a quiesce waits for the start and stops what it began; nothing else begins", async () => {
    const agent = await agentProcess();
    const held = await heldProgram("exec sleep 60");
    const run = await start(agent.link, "held", { command: held.path });
    await held.reached;
    const quiesced = agent.link.call(DiskService.method.quiesce, {}, { within: soon(30_000) });
    expect(await isSettled(agent, quiesced)).toBe(false);
    expect(await refusalOf(script(agent.link, "late", "true"))).toMatchObject({ reason: "AGENT_RETIRING" });
    held.release();
    expect((await quiesced).stoppedCount).toBe(1);
    expect(await run.end()).toBe("SIGTERM");
  });

  it("G26 a SIGTERM of the agent ends it before it has begun, and the agent exits", async () => {
    const agent = await agentProcess();
    const held = await heldProgram(`echo x >> ${agent.root}/ran`);
    await start(agent.link, "held", { command: held.path }, detached);
    await held.reached;
    agent.child.kill("SIGTERM");
    expect(await agent.exited).toBe(0);
    held.release();
    expect(existsSync(join(agent.root, "ran"))).toBe(false);
  });

  it("G26 what still waits for its turn when the agent is told to stop is not begun, and is told so", async () => {
    const agent = await agentProcess();
    const held = await heldProgram("exec sleep 60");
    await start(agent.link, "held", { command: held.path }, detached);
    await held.reached;
    const waiting = await Promise.all(
      ["a", "b", "c"].map((id) => script(agent.link, id, `echo ${id} >> ${agent.root}/ran`)),
    );
    const opening = openTerminal(agent.link, "terminal", {
      command: "sh",
      args: ["-c", `echo t >> ${agent.root}/ran`],
    });
    const told = Promise.all([...waiting.map(({ over }) => over), opening.catch((error) => error)]);
    await ask(agent.link); // What was sent before has been taken.
    agent.child.kill("SIGTERM");
    for (const refusal of await told) expect(refusal).toMatchObject({ reason: "AGENT_RETIRING" });
    expect(await agent.exited).toBe(0);
    expect(existsSync(join(agent.root, "ran"))).toBe(false);
  });

  it("environments of starts that wait for their turn are bounded together, and let go with the start", async () => {
    const { link } = await agentProcess();
    const held = await heldProgram("exit 0");
    const run = await start(link, "held", { command: held.path });
    await held.reached;
    const env = { LARGE: "x".repeat(3_500_000) }; // More than the kernel takes; 64 MiB are room for 19 of them.
    const waiting: FollowedExecution[] = [];
    for (let at = 0; at < 19; at += 1) waiting.push(await start(link, `w${at}`, { command: "true", env }));
    expect(await refusalOf(start(link, "w19", { command: "true", env }))).toMatchObject({
      reason: "EXECUTION_CAPACITY",
    });
    held.release();
    expect(await run.end()).toBe(0);
    for (const { over } of waiting) expect(await over).toMatchObject({ reason: "INVALID_REQUEST" }); // E2BIG.
    expect(await refusalOf(start(link, "w19", { command: "true", env }))).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  it("environments of sessions that wait for their turn are bounded together, and let go with the start", async () => {
    const { link } = await agentProcess();
    const held = await heldProgram("exit 0");
    const run = await start(link, "held", { command: held.path });
    await held.reached;
    const env = { LARGE: "x".repeat(3_500_000) }; // More than the kernel takes; 64 MiB are room for 19 of them.
    const open = (id: string) => openTerminal(link, id, { command: "true", env }).catch((error) => error);
    const waiting = Array.from({ length: 19 }, (_, at) => open(`w${at}`));
    expect(await open("w19")).toMatchObject({
      reason: "SESSION_CAPACITY",
      metadata: { setting: "sessionEnvironmentsMaxBytes", limit: String(sessionEnvironmentsMaxBytes) },
    });
    held.release();
    expect(await run.end()).toBe(0);
    for (const refusal of await Promise.all(waiting)) expect(refusal).toMatchObject({ reason: "INVALID_REQUEST" }); // E2BIG.
    expect(await open("w19")).toMatchObject({ reason: "INVALID_REQUEST" });
    expect((await link.call(SessionService.method.listSessions, {}, { within: soon() })).sessions).toEqual([]);
  });

  it("G6 a SIGKILL of the agent leaves an id that is LOST, and is not run again", async () => {
    const [state, root] = [directory(), directory()];
    const pod = { HOLDFAST_AGENT_STATE_DIR: state, HOLDFAST_WORKSPACE_ROOT: root };
    const first = await agentProcess(pod);
    const held = await heldProgram("echo x >> ran");
    await start(first.link, "held", { command: held.path }, detached);
    await held.reached;
    first.child.kill("SIGKILL");
    await first.exited;
    held.release();
    const { link } = await agentProcess(pod);
    expect(await refusalOf(start(link, "held", { command: held.path }, detached))).toMatchObject({
      reason: "EXECUTION_LOST",
    });
    expect(await (await script(link, "after", "cat ran 2>/dev/null; true")).end()).toBe(0);
    const ran = existsSync(join(root, "ran")) ? readFileSync(join(root, "ran"), "utf8") : "";
    expect(["", "x\n"]).toContain(ran); // Which of them is what LOST leaves open.
  });

  it("B32 a SIGKILL of the agent leaves a session that was never begun LOST, and nobody says that it ran", async () => {
    const [state, root] = [directory(), directory()];
    const pod = { HOLDFAST_AGENT_STATE_DIR: state, HOLDFAST_WORKSPACE_ROOT: root };
    const first = await agentProcess(pod);
    const held = await heldProgram("exit 0");
    await start(first.link, "held", { command: held.path }, detached);
    await held.reached;
    const opening = openTerminal(first.link, "behind", { command: "sh", args: ["-c", "echo x >> ran"] });
    const cut = opening.catch((error) => error);
    await ask(first.link); // It has been taken.
    first.child.kill("SIGKILL");
    await first.exited;
    expect(await cut).toBeInstanceOf(Error);
    held.release();
    const { link } = await agentProcess(pod);
    await expect(attachTo(link, "behind")).rejects.toMatchObject({
      reason: "SESSION_LOST",
      message: expect.stringContaining("or was never started"),
    });
    expect(existsSync(join(root, "ran"))).toBe(false);
  });
});
