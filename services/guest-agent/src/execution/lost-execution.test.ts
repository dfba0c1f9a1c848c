import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { describe, expect, it, onTestFinished } from "vitest";
import { agentProcess, soon } from "../testing/agent-process.testing.ts";
import { attach, cancel, refusalOf, script, start } from "../testing/followed-execution.testing.ts";

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-lost-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe("an agent that was killed and started again in its pod", () => {
  it("G6 runs no id again: it is LOST with the process that had it, whatever is asked of it", async () => {
    const [state, root] = [directory(), directory()];
    const pod = { HOLDFAST_AGENT_STATE_DIR: state, HOLDFAST_WORKSPACE_ROOT: root };
    const first = await agentProcess(pod);
    const ended = await script(first.link, "ended", "echo x >> ran");
    expect(await ended.end()).toBe(0);
    const running = await script(first.link, "running", "echo x >> ran; echo ready; exec sleep 60");
    await running.until(() => running.text === "ready\n");
    const huge = Array.from({ length: 40 }, () => "x".repeat(100_000));
    expect(await refusalOf(start(first.link, "refused", { command: "echo", args: huge }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
    const bootId = running.started?.bootId;
    first.child.kill("SIGKILL");
    await first.exited;
    process.kill(Number(running.started?.pid), "SIGKILL"); // As the end of its container does.

    const { link } = await agentProcess(pod);
    const lost = { reason: "EXECUTION_LOST", metadata: { boot_id: bootId } };
    expect(await refusalOf(script(link, "ended", "echo x >> ran"))).toMatchObject(lost);
    expect(await refusalOf(script(link, "running", "echo x >> ran; echo ready; exec sleep 60"))).toMatchObject(lost);
    expect(await refusalOf(script(link, "running", "echo another"))).toMatchObject({ reason: "EXECUTION_EXISTS" });
    expect(await refusalOf(attach(link, "running"))).toMatchObject(lost);
    const refusal = (call: Promise<unknown>) =>
      call.then(
        () => undefined,
        (error) => error,
      );
    const { getExecution, signalExecution, writeStdin, listExecutions } = ExecutionService.method;
    const within = soon();
    expect(await refusal(cancel(link, "running"))).toMatchObject(lost);
    expect(await refusal(link.call(getExecution, { executionId: "running" }, { within }))).toMatchObject(lost);
    expect(
      await refusal(link.call(signalExecution, { executionId: "running", signal: "TERM" }, { within })),
    ).toMatchObject(lost);
    expect(await refusal(link.call(writeStdin, { executionId: "running" }, { within }))).toMatchObject(lost);
    expect((await link.call(listExecutions, {}, { within })).executions).toEqual([]);
    expect(readFileSync(join(root, "ran"), "utf8")).toBe("x\nx\n");
    // What was refused did not use its id up; and an unknown one is unknown.
    expect(await (await script(link, "refused", "exit 5")).end()).toBe(5);
    expect(await refusalOf(attach(link, "nobody"))).toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
  });

  it("G6 knows every id that may have run, wherever among its starts it was killed", async () => {
    for (let round = 0; round < 4; round += 1) {
      const [state, root] = [directory(), directory()];
      const pod = { HOLDFAST_AGENT_STATE_DIR: state, HOLDFAST_WORKSPACE_ROOT: root };
      const first = await agentProcess(pod);
      const ids = Array.from({ length: 40 }, (_, at) => `id-${at}`);
      const starts = ids.map((id) =>
        script(first.link, id, `echo ${id} >> ran`).then(
          (run) => run.over,
          (error) => error,
        ),
      );
      await Promise.race(starts.slice(round * 8));
      first.child.kill("SIGKILL");
      await Promise.all([first.exited, ...starts]);
      const second = await agentProcess(pod);
      const again = await Promise.all(ids.map(async (id) => (await script(second.link, id, `echo ${id} >> ran`)).over));
      const lines = readFileSync(join(root, "ran"), "utf8").trim().split("\n");
      expect(new Set(lines).size).toBe(lines.length); // Nothing ran twice,
      for (const [at, answer] of again.entries()) if (answer === undefined) expect(lines).toContain(`id-${at}`); // nor was left out in silence.
    }
  }, 60_000);

  it("G6 refuses a start whose id cannot be kept, and starts nothing", async () => {
    const agent = await agentProcess({ HOLDFAST_AGENT_STATE_DIR: directory() });
    await (await script(agent.link, "before", "true")).end();
    // No byte more may be written to any file by this process: as on a full disk.
    execFileSync("prlimit", [`--pid=${agent.pid}`, "--fsize=0:"]);
    expect(await refusalOf(script(agent.link, "full", "touch ran"))).toMatchObject({
      reason: "DISK_FULL",
      metadata: { errno: "EFBIG" },
    });
    execFileSync("prlimit", [`--pid=${agent.pid}`, "--fsize=unlimited:"]);
    expect(await (await script(agent.link, "full", "exit 4")).end()).toBe(4);
  });
});
