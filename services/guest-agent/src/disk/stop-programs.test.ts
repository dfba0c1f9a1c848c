import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Process, readProcess, signalProcess } from "../execution/processes.ts";
import { eventually, pidOf } from "../testing/agent-process.testing.ts";
import { ownedScope, type ProcessScope } from "./process-scope.ts";
import { stopPrograms } from "./stop-programs.ts";

const never = new AbortController().signal;

/** A scope of the test's own, and how to start something in it. */
function stage(): { readonly scope: ProcessScope; run(script: string): Promise<ChildProcess> } {
  const id = randomUUID();
  // Never the whole pod: the tests may run in a container whose other processes are nobody's to stop.
  const scope = ownedScope(`STAGE=${id}`, new Set());
  onTestFinished(() => {
    for (const member of scope.members()) signalProcess(member, "SIGKILL");
  });
  return {
    scope,
    async run(script) {
      const child = spawn("sh", ["-c", script], {
        detached: true,
        stdio: ["ignore", "pipe", "ignore"],
        env: { ...process.env, STAGE: id },
      });
      await new Promise((resolve) => child.stdout.once("data", resolve));
      return child;
    },
  };
}

const stateOf = (pid: number | undefined): string =>
  (pid === undefined ? undefined : readProcess(pid))?.state ?? "gone";

describe("stopping what runs", () => {
  it("G23 tells what ended at SIGTERM from what had to be killed, and a scan that finds nothing confirms it", async () => {
    const { scope, run } = stage();
    const polite = await run("echo ready; exec sleep 100");
    const stubborn = await run("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    const report = await stopPrograms(scope, 200, never);
    expect(report.left).toEqual([]);
    expect(report.stopped).toContainEqual({ pid: polite.pid, name: "sleep", lastSignal: "SIGTERM" });
    expect(report.stopped).toContainEqual({ pid: stubborn.pid, name: "sh", lastSignal: "SIGKILL" });
    expect(scope.members()).toEqual([]);
  });

  it("G23 catches what forks as fast as it can, in sessions of its own", async () => {
    const { scope, run } = stage();
    await run(
      "echo ready; trap '' TERM; while :; do setsid sh -c 'trap \"\" TERM; sleep 100 & sleep 100' & sleep 0.002; done",
    );
    await eventually(() => scope.members().length > 20);
    const report = await stopPrograms(scope, 50, never);
    expect(report.left).toEqual([]);
    expect(scope.members()).toEqual([]);
  });

  it("G23 ends also what was stopped before, and what detached itself by a double fork", async () => {
    const { scope, run } = stage();
    const stopped = await run("echo ready; exec sleep 100");
    process.kill(pidOf(stopped), "SIGSTOP");
    await eventually(() => stateOf(stopped.pid) === "T");
    await run("(setsid sh -c 'sleep 100 & echo ready')");
    const report = await stopPrograms(scope, 1_000, never);
    expect(report.left).toEqual([]);
    expect(report.stopped.map(({ lastSignal }) => lastSignal)).toContain("SIGTERM");
    expect(scope.members()).toEqual([]);
  });

  it("G23 is never a short success: after eight rounds it names what is left, and that runs on unfrozen", async () => {
    const { scope: own, run } = stage();
    let spawned = 0;
    // Something that no round can stop: each scan finds a new one.
    const scope: ProcessScope = {
      kind: "owned-sessions",
      members: () => {
        if (own.members().length === 0) {
          const child = spawn("sleep", ["100"], { detached: true, stdio: "ignore" });
          spawned += 1;
          onTestFinished(() => {
            child.kill("SIGKILL");
          });
          const found = readProcess(pidOf(child));
          return found ? [found] : [];
        }
        return own.members();
      },
    };
    await run("echo ready; exec sleep 100");
    const report = await stopPrograms(scope, 0, never);
    expect(report.rounds).toBe(9);
    expect(report.left.length).toBeGreaterThan(0);
    expect(spawned).toBeGreaterThan(0);
    for (const { pid } of report.left) await eventually(() => stateOf(pid) !== "T");
  });

  it("G23 its time is bounded: what has not ended by then is left, named with its last signal", async () => {
    const { scope, run } = stage();
    const stubborn = await run("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    const report = await stopPrograms(scope, 4_000, never, 150);
    const left = report.left.find(({ pid }) => pid === stubborn.pid);
    if (left === undefined)
      expect(stateOf(stubborn.pid)).not.toBe("S"); // The kill at the end of the time was in time.
    else expect(left).toMatchObject({ name: "sh" });
  });

  it("freezes nobody for good: withdrawn in the grace, or unable to look, it lets go on", async () => {
    const { scope, run } = stage();
    const stubborn = await run("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    const withdrawn = new AbortController();
    const stopping = stopPrograms(scope, 4_000, withdrawn.signal);
    withdrawn.abort(new Error("withdrawn"));
    await expect(stopping).rejects.toThrow("withdrawn");
    expect(stateOf(stubborn.pid)).not.toBe("T");
    let looks = 0;
    const blind: ProcessScope = {
      kind: "owned-sessions",
      members: () => {
        looks += 1;
        if (looks > 1) throw new Error("EMFILE");
        return scope.members();
      },
    };
    await expect(stopPrograms(blind, 100, never)).rejects.toThrow("EMFILE");
    await eventually(() => stateOf(stubborn.pid) !== "T");
    expect(readFileSync(`/proc/${stubborn.pid}/status`, "utf8")).not.toContain("T (stopped)");
  });

  it("G23 signals no stranger: a pid that was reused since the scan is left alone", async () => {
    const { scope, run } = stage();
    const stranger = await run("echo ready; exec sleep 100");
    const [seen] = scope.members();
    if (seen === undefined) throw new Error("not found");
    const former: Process = { ...seen, startTicks: seen.startTicks - 1 };
    let looks = 0;
    const stale: ProcessScope = { kind: "owned-sessions", members: () => (looks++ === 0 ? [former] : []) };
    expect(await stopPrograms(stale, 0, never)).toMatchObject({ stopped: [], left: [] });
    await eventually(() => stateOf(stranger.pid) === "S"); // Alive, and not stopped: on a busy machine it may run a moment longer.
  });
});
