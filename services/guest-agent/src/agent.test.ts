import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { EndCause, ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { systemClock } from "@holdfast/async";
import { linkProtocolVersion } from "@holdfast/contract";
import { LinkClient } from "@holdfast/guest-link";
import { describe, expect, it } from "vitest";
import { bundleGuestAgent } from "../bundle.ts";
import { servedFeatures } from "./agent.ts";
import { agentProcess, eventually, host, soon, token } from "./testing/agent-process.testing.ts";
import { attach, refusalOf, script } from "./testing/followed-execution.testing.ts";

/** Runs a file of the bundle to its end. */
async function run(
  file: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | null; stderr: string; tookMs: number }> {
  const { directory } = await bundleGuestAgent();
  const started = performance.now();
  const child = spawn(process.execPath, [join(directory, file)], { env, stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stderr, tookMs: performance.now() - started };
}

describe("start", () => {
  it("G1 does not happen without a token, and says what else is wrong at once", async () => {
    const { code, stderr } = await run("main.mjs", { HOLDFAST_WORKSPACE_ROOT: "/no/such/directory" });
    expect(code).toBe(1);
    for (const name of ["HOLDFAST_AGENT_TOKEN", "HOLDFAST_AGENT_HOST", "HOLDFAST_WORKSPACE_ROOT"])
      expect(stderr).toContain(name);
  });

  it("listens on its own address alone", async () => {
    const { port } = await agentProcess();
    const elsewhere = connect(port, "127.0.0.1");
    const error = await new Promise<Error>((resolve) => elsewhere.once("error", resolve));
    expect(error).toMatchObject({ code: "ECONNREFUSED" });
  });
});

describe("health", () => {
  it("G3 tells serving, protocol version, features by name and boot id, and every answer carries the boot id", async () => {
    const { link } = await agentProcess();
    const health = await link.call(AgentService.method.health, {}, { within: soon() });
    expect(health).toMatchObject({
      serving: true,
      protocolVersion: linkProtocolVersion,
      features: [...servedFeatures],
    });
    expect(health.bootId).toMatch(/^[0-9a-f-]{36}$/);
    const run = await script(link, "boot", "true");
    expect(await run.end()).toBe(0);
    expect(run.started?.bootId).toBe(health.bootId);
    expect(run.stream?.bootId).toBe(health.bootId);
    const other = await agentProcess();
    expect((await other.link.call(AgentService.method.health, {}, { within: soon() })).bootId).not.toBe(health.bootId);
  });

  it("G32 shows the privileges of a process that is started as commands are", async () => {
    const { link, pid } = await agentProcess();
    const { processStatus } = await link.call(AgentService.method.probe, {}, { within: soon() });
    for (const line of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Uid"]) {
      expect(processStatus).toMatch(new RegExp(`^${line}:`, "m"));
    }
    expect(processStatus).toContain(`PPid:\t${pid}\n`);
  });

  it("G34 is asked over a unix socket: ready.mjs answers by its exit code", async () => {
    const agent = await agentProcess();
    const ready = await run("ready.mjs", { HOLDFAST_AGENT_SOCKET: agent.socket });
    expect(ready).toMatchObject({ code: 0, stderr: "" });
    const absent = await run("ready.mjs", { HOLDFAST_AGENT_SOCKET: `${agent.socket}.absent` });
    expect(absent.code).toBe(1);
    agent.child.kill("SIGKILL");
    await agent.exited;
    expect((await run("ready.mjs", { HOLDFAST_AGENT_SOCKET: agent.socket })).code).toBe(1);
  });

  it("starts over the socket that a killed agent left behind", async () => {
    const first = await agentProcess();
    first.child.kill("SIGKILL");
    await first.exited;
    expect(existsSync(first.socket)).toBe(true);
    await agentProcess({ HOLDFAST_AGENT_SOCKET: first.socket });
    expect((await run("ready.mjs", { HOLDFAST_AGENT_SOCKET: first.socket })).code).toBe(0);
  });
});

describe("when memory runs out", () => {
  it("G34 the kernel ends what runs, and what that starts, before the agent", async () => {
    const { link, pid } = await agentProcess();
    const scoreOf = (of: number | string): number => Number(readFileSync(`/proc/${of}/oom_score_adj`, "latin1"));
    const run = await script(link, "score", "sleep 0.05; sh -c 'cat /proc/self/oom_score_adj'");
    expect(await run.end()).toBe(0);
    expect(Number(run.text)).toBe(Math.min(1_000, scoreOf(pid) + 200));
  });
});

describe("stop", () => {
  it("G26 ends what runs, lets its readers have the end, exits 0, and a second SIGTERM changes nothing", async () => {
    const agent = await agentProcess();
    const run = await script(
      agent.link,
      "polite",
      "trap 'until [ -e go ]; do sleep 0.02; done; echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
    );
    await run.until(() => run.text.includes("ready"));
    agent.child.kill("SIGTERM");
    await eventually(() => agent.log().includes("stopping"));
    agent.child.kill("SIGTERM");
    await agent.link.call(AgentService.method.health, {}, { within: soon() }); // It has the second one.
    writeFileSync(join(agent.root, "go"), "");
    expect(await run.end()).toBe(5);
    expect(run.exited?.cause).toBe(EndCause.AGENT_STOPPED);
    expect(run.bytes("stdout").toString()).toBe("ready\nbye\n");
    expect(await agent.exited).toBe(0);
  });

  it("L45 refuses new commands while it stops, still answers for those it has, and is not ready", async () => {
    const agent = await agentProcess();
    const run = await script(
      agent.link,
      "slow",
      "trap 'until [ -e go ]; do sleep 0.02; done; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
    );
    await run.until(() => run.text.includes("ready"));
    agent.child.kill("SIGTERM");
    await eventually(() => agent.log().includes("stopping"));
    expect(await refusalOf(script(agent.link, "new", "true"))).toMatchObject({ reason: "AGENT_RETIRING" });
    expect((await agent.link.call(AgentService.method.health, {}, { within: soon() })).serving).toBe(false);
    const late = await attach(agent.link, "slow");
    writeFileSync(join(agent.root, "go"), "");
    expect(await late.end()).toBe(0);
    expect(await agent.exited).toBe(0);
  });
});

describe("whatever is sent", () => {
  it("does not end the agent: garbage before and after the proof, and half-open streams", async () => {
    const agent = await agentProcess();
    for (const bytes of [
      Buffer.alloc(70_000, 0xff),
      Buffer.from("GET / HTTP/1.1\r\n\r\n"),
      Buffer.from("00000004" + "01" + "ffffffff", "hex"),
    ]) {
      const socket = connect(agent.port, host);
      socket.on("error", () => undefined);
      socket.resume();
      socket.write(bytes);
      await new Promise((resolve) => socket.once("close", resolve));
    }
    const stranger = new LinkClient({ host, port: agent.port, token: `${token}x` }, systemClock);
    await stranger.call(AgentService.method.health, {}, { within: soon() }).catch(() => undefined);
    stranger.close();
    const run = await script(agent.link, "cut", "sleep 0.1; echo on");
    await run.until(() => run.started !== undefined);
    run.stream?.destroy(new Error("cut by the test"));
    await expect(run.end()).rejects.toMatchObject({ name: "LinkLost" });
    const again = await attach(agent.link, "cut");
    expect(await again.end()).toBe(0);
    expect(again.text).toBe("on\n");
    const cancelled = agent.link.call(
      ExecutionService.method.cancelExecution,
      { executionId: "no one" },
      { within: soon() },
    );
    await expect(cancelled).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    expect(agent.log()).not.toContain("uncaught");
  });

  it("leaves nothing open: descriptors return to where they were", async () => {
    const agent = await agentProcess();
    const open = (): number => readdirSync(`/proc/${agent.pid}/fd`).length;
    await (await script(agent.link, "warm", "true")).end();
    const before = open();
    for (let at = 0; at < 200; at += 1) {
      const run = await script(agent.link, `f${at}`, at % 3 === 0 ? "echo hi" : "head -c 100000 /dev/zero");
      if (at % 3 === 1) run.stream?.destroy(new Error("cut by the test"));
      else await run.end();
    }
    await eventually(() => open() <= before + 3);
  });
});
