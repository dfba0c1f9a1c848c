import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { GapReason } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { executionLogMaxBytes, retainedExecutionLogMaxBytes } from "@holdfast/contract";
import { describe, expect, it, onTestFinished } from "vitest";
import { bundleGuestAgent } from "../../bundle.ts";
import { type AgentRun, agentProcess, eventually, soon } from "../testing/agent-process.testing.ts";
import { attach, cancel, refusalOf, script, start } from "../testing/followed-execution.testing.ts";

const isRoot = process.getuid?.() === 0;
const mayUnshare = spawnSync("unshare", ["--pid", "--fork", "--mount-proc", "true"]).status === 0;
const user = 61_002;

/** As a node starts it: the agent under an init, alone in its pid and mount namespaces. */
const inPod: AgentRun = {
  around: [
    "unshare",
    "--pid",
    "--mount",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    '"$0" "$@" & wait $!; wait',
  ],
};

describe.each([
  ["plainly", {}, true],
  ["in a pod's own namespaces (skipped where the kernel allows none)", inPod, mayUnshare],
] as const)("commands of an agent that runs %s", (_, run, possible) => {
  it.runIf(possible)(
    "B17 each ends with its own code, however many leave a job behind; no zombie stays, and nothing is refused",
    async () => {
      const { link } = await agentProcess({}, undefined, run);
      const codes: (number | string)[] = [];
      let next = 0;
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          while (next < 64) codes.push(await (await script(link, `n${next++}`, "(sleep 0.2 &) ; exit 7")).end());
        }),
      );
      expect(codes).toEqual(Array.from({ length: 64 }, () => 7));
      if (run !== inPod) return; // Zombies of other containers of this machine are not the agent's.
      let looks = 0;
      const zombies = async (): Promise<string> => {
        const line =
          "while pgrep -x sleep >/dev/null; do sleep 0.02; done; grep -l '^State:.Z' /proc/[0-9]*/status; true";
        const look = await script(link, `zombies${looks++}`, line);
        await look.end();
        return look.text;
      };
      await expect.poll(zombies).toBe("");
    },
    60_000,
  );

  it.runIf(possible)("G9 G10 G13 are as everywhere", async () => {
    const { link } = await agentProcess({}, undefined, run);
    const runaway = await script(
      link,
      "escape",
      "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & echo ready; while :; do sleep 0.05; done",
    );
    await runaway.until(() => runaway.text === "ready\n");
    await cancel(link, "escape");
    expect(await runaway.end()).toBe("SIGKILL");
    const left = await script(link, "left", "sleep 61 & echo ok");
    expect(await left.end()).toBe(0);
    expect(left.exited?.leftovers.map(({ name }) => name)).toEqual(["sleep"]);
    expect(await (await start(link, "missing", { command: "holdfast-no-such-program" })).end()).toBe(127);
    expect(await (await start(link, "directory", { command: "/" })).end()).toBe(126);
  });
});

describe("readers that come and go", () => {
  it("B30 one that stalls holds nobody back, and is told what it missed", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "prints", "seq 1 600000; echo end");
    const stalled = await attach(link, "prints");
    stalled.onData = () => stalled.stream?.pause();
    const reads = await attach(link, "prints");
    expect(await run.end()).toBe(0);
    expect(await reads.end()).toBe(0);
    const missed = (reader: typeof reads): number =>
      reader.gaps.reduce((sum, { from, to }) => sum + Number(to - from), 0);
    expect(missed(reads) + reads.bytes().length).toBe(run.bytes().length);
    expect(run.gaps).toEqual([]);
    stalled.onData = undefined;
    stalled.stream?.resume();
    expect(await stalled.end()).toBe(0); // Every offset was checked on the way: what is missing was told.
    expect(stalled.gaps.every(({ reason }) => reason === GapReason.LOG_LIMIT)).toBe(true);
    expect(stalled.text.endsWith("600000\nend\n")).toBe(true);
  });

  it("B35 B36 nobody's deadline is the command's, and what it says to nobody is kept in order", async () => {
    const { link } = await agentProcess();
    const first = await script(link, "alone", "seq 1 60000; while [ ! -e go ]; do sleep 0.02; done; seq 1 30; exit 4", {
      retainOutput: true,
    });
    await first.until(() => first.started !== undefined);
    first.stream?.destroy(new Error("its deadline passed"));
    await first.over;
    const second = await attach(link, "alone");
    await second.until(() => second.position > 0);
    second.stream?.destroy(new Error("and this one's"));
    await script(link, "goes", "touch go").then((run) => run.end());
    const whole = `${range(1, 60_000)}${range(1, 30)}`;
    const third = await attach(link, "alone");
    expect(await third.end()).toBe(4);
    expect(third.text).toBe(whole);
    expect(whole.length).toBeGreaterThan(executionLogMaxBytes);
  });

  it("B51 those that go at once leave nothing behind", async () => {
    const agent = await agentProcess();
    const { link } = agent;
    const run = await script(link, "quiet", "echo ready; exec sleep 60");
    await run.until(() => run.text === "ready\n");
    const open = () => readdirSync(`/proc/${agent.pid}/fd`).length;
    const before = open();
    for (let round = 0; round < 20; round += 1) {
      const readers = await Promise.all(Array.from({ length: 20 }, () => attach(link, "quiet")));
      for (const [at, reader] of readers.entries()) {
        if (at % 2 === 0) reader.stream?.end({ clientClosed: true });
        else reader.stream?.destroy(new Error("gone"));
      }
    }
    await eventually(() => open() <= before + 4);
    expect(run.exited).toBeUndefined();
    await cancel(link, "quiet");
  });

  it("B52 a line of 8 MB and an input of 2 MB are whole", async () => {
    const { link } = await agentProcess();
    const line = await script(link, "line", "head -c 8388608 /dev/zero | tr '\\0' x; echo");
    expect(await line.end()).toBe(0);
    expect(line.bytes().equals(Buffer.concat([Buffer.alloc(8_388_608, "x"), Buffer.from("\n")]))).toBe(true);
    const stdin = Buffer.alloc(2 * 1024 * 1024, "0123456789abcdef");
    const input = await start(link, "input", { command: "cat", stdin });
    expect(await input.end()).toBe(0);
    expect(input.bytes().equals(stdin)).toBe(true);
  });

  it("G5 the input of commands that go on is not kept", async () => {
    const agent = await agentProcess();
    const stdin = Buffer.alloc(3 * 1024 * 1024, "x");
    const before = agent.rss();
    for (let at = 0; at < 80; at += 1) {
      const run = await start(agent.link, `n${at}`, { command: "sh", args: ["-c", "wc -c; exec sleep 300"], stdin });
      await run.until(() => run.text === `${stdin.length}\n`);
    }
    expect(agent.rss() - before).toBeLessThan(120 * 1024 * 1024); // Of 240 MiB.
  }, 60_000);

  it("B59 endless output that nobody reads costs its log and no more, and is trimmed with a gap", async () => {
    const agent = await agentProcess();
    const { link } = agent;
    const run = await script(link, "yes", "exec yes", { retainOutput: true });
    await run.until(() => run.position > 0);
    const before = agent.rss();
    run.stream?.destroy(new Error("nobody reads"));
    const written = async (): Promise<number> => {
      const late = await attach(link, "yes", { fromOffset: 0n });
      await late.until(() => late.position > 0);
      const [gap] = late.gaps;
      late.stream?.end({ clientClosed: false });
      return Number(gap?.to ?? 0);
    };
    while ((await written()) < 200 * retainedExecutionLogMaxBytes);
    expect(agent.rss() - before).toBeLessThan(96 * 1024 * 1024); // Of 200 MiB; what passes through is collected late.
    await cancel(link, "yes");
    const late = await attach(link, "yes");
    expect(await late.end()).toBe("SIGTERM");
    expect(late.bytes().length).toBe(retainedExecutionLogMaxBytes);
    expect(late.gaps).toMatchObject([{ from: 0n, reason: GapReason.LOG_LIMIT }]);
  });
});

describe("a guest that lacks something", () => {
  it.runIf(isRoot)(
    "has no room for a process more: the start is refused by name, and nothing else suffers",
    async () => {
      const limited: AgentRun = { around: ["prlimit", "--nproc=40"] };
      const { link } = await agentProcess({}, user, limited);
      const runs = [];
      let refusal: Error | undefined;
      for (let at = 0; refusal === undefined && at < 60; at += 1) {
        const run = await script(link, `n${at}`, "exec sleep 60");
        await Promise.race([run.until(() => run.started !== undefined), run.over]);
        if (run.started === undefined) refusal = await run.over;
        else runs.push(run);
      }
      expect(refusal).toMatchObject({ reason: "EXECUTION_CAPACITY", metadata: { cause: "EAGAIN" } });
      expect(runs.length).toBeGreaterThan(2);
      const id = `n${runs.length}`;
      expect(await refusalOf(script(link, id, "exec sleep 60"))).toMatchObject({ reason: "EXECUTION_CAPACITY" });
      await cancel(link, "n0");
      const again = await script(link, id, "exec sleep 60"); // The refused id was not used up.
      await again.until(() => again.started !== undefined);
      expect(runs.slice(1).every(({ exited }) => exited === undefined)).toBe(true);
    },
  );

  it("has no descriptor for a command more: the start is refused by name, and it serves on", async () => {
    const agent = await agentProcess();
    await (await script(agent.link, "before", "true")).end();
    const { link } = agent;
    const streams = await Promise.all(["one", "two"].map((id) => script(link, id, "exec sleep 60")));
    await Promise.all(streams.map((run) => run.until(() => run.started !== undefined)));
    const highest = Math.max(...readdirSync(`/proc/${agent.pid}/fd`).map(Number));
    execFileSync("prlimit", [`--pid=${agent.pid}`, `--nofile=${highest + 2}:`]);
    const refusals: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      const answer = await script(link, `more${at}`, "true").then(
        (run) => run.over,
        (error) => error,
      );
      if (answer !== undefined) refusals.push(answer.reason ?? answer.name);
    }
    expect(refusals.every((reason) => ["EXECUTION_CAPACITY", "LinkLost", "NothingSent"].includes(reason))).toBe(true);
    execFileSync("prlimit", [`--pid=${agent.pid}`, "--nofile=1024:"]);
    expect(await (await script(link, "after", "exit 3")).end()).toBe(3);
    expect((await link.call(AgentService.method.health, {}, { within: soon() })).runningExecutions).toBe(2);
  });

  it("a directory with a name that is not UTF-8 is refused by name, and one that went is no missing program", async () => {
    const { link, root } = await agentProcess();
    mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]));
    execFileSync("sh", ["-c", 'ln -s "$(printf "\\377\\376")" odd'], { cwd: root });
    const refusal = await refusalOf(start(link, "odd", { command: "true", cwd: "odd" }));
    expect(refusal).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "cwd" } });
    expect(refusal.message).toContain("not UTF-8");
    // Its files may have any name, and so may what runs.
    const odd = await script(
      link,
      "files",
      'ln -s /bin/sleep "$(printf "x\\377")"; "./$(printf "x\\377")" 61 & ls -d x*',
      { drain: { seconds: 0n } },
    );
    expect(await odd.end()).toBe(0);
    expect(odd.bytes().equals(Buffer.from([0x78, 0xff, 0x0a]))).toBe(true);
    expect(odd.exited?.leftovers).toHaveLength(1);
  });

  it("has no addon for its C library: commands are started by Node on named pipes, and without mkfifo not at all", async () => {
    const { entry: whole } = await bundleGuestAgent();
    const bare = mkdtempSync(join(tmpdir(), "holdfast-bare-agent-"));
    const bin = mkdtempSync(join(tmpdir(), "holdfast-no-mkfifo-"));
    onTestFinished(() => {
      for (const path of [bare, bin]) rmSync(path, { recursive: true, force: true });
    });
    const entry = join(bare, "main.mjs");
    copyFileSync(whole, entry);
    const { link } = await agentProcess({}, undefined, { entry });
    const run = await start(link, "input", {
      command: "sh",
      args: ["-c", "cat > /dev/stdout; echo err > /dev/stderr; exit 5"],
      stdin: Buffer.from("in\n"),
    });
    expect(await run.end()).toBe(5);
    expect(run.bytes("stdout").toString()).toBe("in\n");
    expect(run.bytes("stderr").toString()).toBe("err\n");
    expect(await (await start(link, "missing", { command: "holdfast-no-such-program" })).end()).toBe(127);
    const many = await Promise.all(Array.from({ length: 12 }, (_, at) => script(link, `n${at}`, `exit ${at}`)));
    expect(await Promise.all(many.map((each) => each.end()))).toEqual(Array.from({ length: 12 }, (_, at) => at));
    for (const name of ["sh", "cat"]) symlinkSync(`/bin/${name}`, join(bin, name));
    const without = await agentProcess({ PATH: bin }, undefined, { entry });
    expect(await refusalOf(script(without.link, "none", "true"))).toMatchObject({ reason: "GUEST_FEATURE_MISSING" });
    expect((await without.link.call(AgentService.method.health, {}, { within: soon() })).serving).toBe(true);
  });
});

function range(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, at) => `${from + at}\n`).join("");
}
