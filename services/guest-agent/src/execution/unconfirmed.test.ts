import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { describe, expect, it } from "vitest";
import { agentProcess, eventually, soon } from "../testing/agent-process.testing.ts";
import { attach, cancel, refusalOf, script } from "../testing/followed-execution.testing.ts";
import { isGone, readProcess } from "./processes.ts";

const setpriv = "/usr/bin/setpriv";
const user = 61_001;

/** Only root can make a process that an ordinary user's agent may not signal. */
const possible = process.getuid?.() === 0 && existsSync(setpriv);

/** How many files a process may have open from now on, below its hard limit. */
function limitFiles(pid: number, count: number): void {
  execFileSync("prlimit", [`--pid=${pid}`, `--nofile=${count}:`]);
}

describe("a guest that cannot open a file more", () => {
  it("G11 calls nothing gone that it could not look at, and a later cancel ends it", async () => {
    const { link, pid } = await agentProcess();
    const run = await script(link, "blind", "echo $$; exec sleep 300");
    await run.until(() => run.text.includes("\n"));
    const leader = Number(run.text);
    limitFiles(pid, 3);
    expect(await cancel(link, "blind").catch((error) => error)).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED" });
    expect(isGone(readProcess(leader))).toBe(false);
    limitFiles(pid, 1024);
    await cancel(link, "blind");
    expect(isGone(readProcess(leader))).toBe(true);
    expect(await run.end()).toBe("SIGTERM");
  });

  it("G10 makes up no end while it cannot see what a command left behind", async () => {
    const { link, pid, log } = await agentProcess();
    const run = await script(link, "ends", "sleep 301 & echo ready; mkfifo f; read line < f");
    await run.until(() => run.text.includes("ready"));
    limitFiles(pid, 3);
    process.kill(-Number(run.started?.pid), "SIGHUP"); // The shell goes; the agent has to look for leftovers.
    await eventually(() => log().includes("its end is not known yet"));
    expect(run.exited).toBeUndefined();
    limitFiles(pid, 1024);
    expect(await run.end()).toBe("SIGHUP");
  });
});

describe("a process that survives SIGKILL", () => {
  it.runIf(possible)(
    "G11 makes its execution unconfirmed, by name, in health and to its readers; the agent serves on, and whoever asks later finds it gone",
    async () => {
      const { link, root } = await agentProcess({}, user);
      const becomeRoot = join(root, "become-root");
      copyFileSync(setpriv, becomeRoot);
      chmodSync(becomeRoot, 0o4755);
      const run = await script(link, "stuck", "./become-root --reuid 0 sleep 300 & echo $! > pid; echo ready; wait");
      await run.until(() => run.text.includes("ready"));
      const pid = Number(readFileSync(join(root, "pid"), "utf8"));
      await eventually(() => readProcess(pid)?.name === "sleep"); // Root's by now.
      const asked = performance.now();
      const refusal = await cancel(link, "stuck").catch((error) => error);
      expect(refusal).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED" });
      expect(refusal.metadata.survivors).toMatch(/^\d+ \(sleep\)$/);
      expect(performance.now() - asked).toBeLessThan(7_000);
      expect(await run.over).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED" });
      const health = await link.call(AgentService.method.health, {}, { within: soon() });
      expect(health).toMatchObject({ serving: true, unconfirmedExecutions: ["stuck"] });
      expect(await (await script(link, "next", "exit 3")).end()).toBe(3);
      expect(await refusalOf(attach(link, "stuck"))).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED" });

      process.kill(Number.parseInt(refusal.metadata.survivors, 10), "SIGKILL");
      await eventually(() => isGone(readProcess(pid)));
      // Whoever asks next makes it look again, a reader as well as a cancel.
      expect(await (await attach(link, "stuck")).end()).toBe("SIGTERM");
      expect((await link.call(AgentService.method.health, {}, { within: soon() })).unconfirmedExecutions).toEqual([]);
    },
  );
});
