import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { EndCause, GapReason, Leftovers, OnDisconnect } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { executionLogMaxBytes, retainedExecutionLogMaxBytes } from "@holdfast/contract";
import { describe, expect, it, onTestFinished } from "vitest";
import { agentProcess, eventually, soon } from "../testing/agent-process.testing.ts";
import { attach, cancel, namesOf, refusalOf, script, start } from "../testing/followed-execution.testing.ts";

const lives = (pid: number): boolean => {
  const state = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8") : ") X";
  return !/\) [ZX]/.test(state);
};
const pidIn = (path: string): number => Number(readFileSync(path, "utf8").trim());

describe("output", () => {
  it("G4 B25 comes out as it went in, wherever reads split a character", async () => {
    const { link } = await agentProcess();
    const lengths = [...range(4_090, 4_100), ...range(16_380, 16_390), ...range(65_530, 65_540)];
    for (const length of lengths) {
      const run = await start(link, `k${length}`, {
        command: "sh",
        args: ["-c", `head -c ${length} /dev/zero | tr '\\0' a; printf '\\360\\237\\230\\200'`],
      });
      expect(await run.end()).toBe(0);
      const expected = Buffer.concat([Buffer.alloc(length, "a"), Buffer.from("😀")]);
      expect(run.bytes().equals(expected)).toBe(true);
      const replay = await attach(link, `k${length}`);
      expect(await replay.end()).toBe(0);
      expect(replay.bytes().equals(expected)).toBe(true);
    }
  });

  it("G4 keeps every byte value", async () => {
    const { link, root } = await agentProcess();
    const all = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    writeFileSync(join(root, "all"), all);
    const run = await start(link, "all", { command: "cat", args: ["all"] });
    expect(await run.end()).toBe(0);
    expect(run.bytes().equals(all)).toBe(true);
  });

  it("B06 is whole at every size around a buffer's, with one exit", async () => {
    const { link } = await agentProcess();
    for (const size of [0, 1, 4095, 4096, 4097, 32767, 32768, 65535, 65536, 65537]) {
      const run = await start(link, `n${size}`, { command: "head", args: ["-c", String(size), "/dev/zero"] });
      expect(await run.end()).toBe(0);
      expect(run.bytes().length).toBe(size);
      expect(run.exited?.outputBytes).toBe(BigInt(size));
    }
  });

  it("tells the two streams apart and keeps the order in which they were read", async () => {
    const { link, root } = await agentProcess();
    const seen = (line: string): string => `until [ -e ${line} ]; do sleep 0.01; done`;
    const each = `echo out$i; ${seen("out$i")}; echo err$i >&2; ${seen("err$i")}`;
    const run = await script(link, "two", `for i in 1 2 3; do ${each}; done`);
    for (const line of ["out1", "err1", "out2", "err2", "out3", "err3"]) {
      await run.until(() => run.text.endsWith(`${line}\n`));
      writeFileSync(join(root, line), ""); // It was read, so the next may be written.
    }
    expect(await run.end()).toBe(0);
    expect(run.text).toBe("out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    expect(run.bytes("stderr").toString()).toBe("err1\nerr2\nerr3\n");
  });

  it("G5 B39 holds the program back while its starter does not read, in bounded memory, and others go on", async () => {
    const agent = await agentProcess();
    const total = 3 * 1024 * 1024 * 1024;
    const run = await start(agent.link, "slow", { command: "head", args: ["-c", String(total), "/dev/zero"] });
    run.onData = () => run.stream?.pause();
    await run.until(() => run.position > 0);
    const before = agent.rss();
    for (let at = 0; at < 20; at += 1) {
      const other = await script(agent.link, `other${at}`, "echo x");
      expect(await other.end()).toBe(0);
    }
    expect(lives(Number(run.started?.pid))).toBe(true);
    expect(agent.rss() - before).toBeLessThan(64 * 1024 * 1024);
    await cancel(agent.link, "slow"); // Confirmed although its reader has not had the output yet.
    expect(lives(Number(run.started?.pid))).toBe(false);
    run.onData = () => undefined;
    run.stream?.resume();
    expect(await run.end()).toBe("SIGTERM"); // And nothing of what was written is missing: the position is checked throughout.
    expect(run.gaps).toEqual([]);
  });

  it("G7 gives followers gaps instead of holding the program back, and keeps the true tail", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "tail", "seq 1 400000");
    const lagging = await attach(link, "tail");
    lagging.onData = () => lagging.stream?.pause();
    expect(await run.end()).toBe(0);
    const late = await attach(link, "tail");
    expect(await late.end()).toBe(0);
    expect(late.gaps).toMatchObject([{ from: 0n, reason: GapReason.LOG_LIMIT }]);
    expect(late.bytes().length).toBe(executionLogMaxBytes);
    expect(late.text.endsWith("\n399999\n400000\n")).toBe(true);
    expect(run.bytes().subarray(-executionLogMaxBytes).equals(late.bytes())).toBe(true);
  });

  it("G7 keeps 1 MiB when retained, and delivers at most max_output with one gap for the rest", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "max", "seq 1 400000", { retainOutput: true, maxOutputBytes: 10n });
    expect(await run.end()).toBe(0);
    expect(run.text).toBe("1\n2\n3\n4\n5\n");
    expect(run.gaps).toMatchObject([{ from: 10n, reason: GapReason.MAX_OUTPUT }]);
    const late = await attach(link, "max");
    await late.end();
    expect(late.bytes().length).toBe(retainedExecutionLogMaxBytes);
  });

  it("G8 is replayed and joined in one step: no byte doubled or lost, from any offset", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "join", "for i in $(seq 1 3000); do echo line $i; done", { retainOutput: true });
    const followers = [];
    for (let at = 0; at < 30; at += 1) {
      followers.push(await attach(link, "join", { fromOffset: BigInt(Math.min(run.position, at * 500)) }));
    }
    expect(await run.end()).toBe(0);
    for (const follower of followers) {
      expect(await follower.end()).toBe(0);
      const from = run.bytes().length - follower.bytes().length;
      expect(follower.gaps).toEqual([]);
      expect(run.bytes().subarray(from).equals(follower.bytes())).toBe(true);
    }
  });

  it("G8 refuses an offset past the end, and an id that it does not know", async () => {
    const { link } = await agentProcess();
    await (await script(link, "short", "echo hi")).end();
    expect(await refusalOf(attach(link, "short", { fromOffset: 4n }))).toMatchObject({ reason: "OFFSET_OUT_OF_RANGE" });
    expect(await (await attach(link, "short", { fromOffset: 3n })).end()).toBe(0);
    expect(await refusalOf(attach(link, "nothing"))).toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
  });
});

describe("one id, one command", () => {
  it("G6 B33 runs once however often the start is repeated, and refuses another request under the id", async () => {
    const { link, root } = await agentProcess();
    const text = "echo x >> c; sleep 0.2; echo done";
    const runs = await Promise.all(Array.from({ length: 6 }, () => script(link, "once", text)));
    for (const run of runs) expect(await run.end()).toBe(0);
    const again = await script(link, "once", text);
    expect(await again.end()).toBe(0);
    expect(again.started?.joined).toBe(true);
    expect(runs.filter((run) => run.started?.joined === false)).toHaveLength(1);
    expect(readFileSync(join(root, "c"), "utf8")).toBe("x\n");
    expect(await refusalOf(script(link, "once", "echo other"))).toMatchObject({ reason: "EXECUTION_EXISTS" });
    const options = await script(link, "once", text, { retainOutput: true, leftovers: Leftovers.KILL });
    expect(await options.end()).toBe(0); // How it is delivered is not part of the request.
  });

  it("G6 refuses a start that expected another agent process", async () => {
    const { link, root } = await agentProcess();
    const refusal = await refusalOf(script(link, "boot", "touch ran", { expectedBootId: "another" }));
    expect(refusal).toMatchObject({ reason: "GUEST_RESTARTED" });
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  it("G6 ends a command that is bound to its client when the client closes, and only then", async () => {
    const { link } = await agentProcess();
    const bound = await script(link, "bound", "sleep 300", { onDisconnect: OnDisconnect.CANCEL });
    const free = await script(link, "free", "sleep 300");
    const givenUp = await script(link, "given-up", "sleep 300", { onDisconnect: OnDisconnect.CANCEL });
    await Promise.all([bound, free, givenUp].map((run) => run.until(() => run.started !== undefined)));
    bound.stream?.end({ clientClosed: true });
    free.stream?.end({ clientClosed: true });
    givenUp.stream?.end({ clientClosed: false });
    const ended = await attach(link, "bound");
    expect(await ended.end()).toBe("SIGTERM");
    expect(ended.exited?.cause).toBe(EndCause.CLIENT_CLOSED);
    expect(lives(Number(free.started?.pid))).toBe(true);
    expect(lives(Number(givenUp.started?.pid))).toBe(true);
  });

  it("G6 lets a later stream take the client's place: the earlier one's end means nothing then", async () => {
    const { link } = await agentProcess();
    const first = await script(link, "place", "sleep 300", { onDisconnect: OnDisconnect.CANCEL });
    await first.until(() => first.started !== undefined);
    const second = await attach(link, "place", { asClient: true });
    await second.until(() => second.started !== undefined);
    first.stream?.end({ clientClosed: true });
    await link.call(AgentService.method.health, {}, { within: soon() });
    expect(lives(Number(first.started?.pid))).toBe(true);
    second.stream?.end({ clientClosed: true });
    expect(await (await attach(link, "place")).end()).toBe("SIGTERM");
  });
});

describe("ending", () => {
  it("G9 B12 reaches what left the session, and double forks: nothing of it lives once confirmed", async () => {
    const { link, root } = await agentProcess();
    const run = await script(
      link,
      "escape",
      `setsid sh -c 'echo $$ > a; while :; do date >> mark; sleep 0.05; done' &
       (setsid sh -c '(sh -c "echo \\$\\$ > b; while :; do sleep 0.05; done" &)' &)
       env -i setsid sh -c 'echo $$ > c; while :; do sleep 0.05; done' &
       sleep 999`,
    );
    await eventually(() =>
      ["a", "b", "c"].every((name) => existsSync(join(root, name)) && pidIn(join(root, name)) > 0),
    );
    await cancel(link, "escape");
    expect(["a", "b", "c"].map((name) => lives(pidIn(join(root, name))))).toEqual([false, false, false]);
    expect(await run.end()).toBe("SIGTERM");
    expect(run.exited?.cause).toBe(EndCause.CANCELLED);
  });

  it("G9 B14 kills what ignores SIGTERM after the grace, and two cancels share one answer", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "stubborn", "trap '' TERM; echo ready; while :; do sleep 1; done");
    await run.until(() => run.text.includes("ready"));
    const started = performance.now();
    const answers = await Promise.all([cancel(link, "stubborn", 900), cancel(link, "stubborn", 900)]);
    const took = performance.now() - started;
    expect(took).toBeGreaterThan(850);
    expect(took).toBeLessThan(2_500);
    expect(answers.map(({ alreadyEnded }) => alreadyEnded)).toEqual([false, false]);
    expect(await run.end()).toBe("SIGKILL");
    expect((await cancel(link, "stubborn")).alreadyEnded).toBe(true);
  });

  it("G9 signals the group also after its leader has died", async () => {
    const { link, root } = await agentProcess();
    const run = await script(
      link,
      "headless",
      "sh -c 'echo $$ > child; exec sleep 300' & while [ ! -s child ]; do sleep 0.01; done; exit 0",
      {
        drain: { seconds: 60n },
      },
    );
    await run.until(() => run.started !== undefined);
    await eventually(() => existsSync(join(root, "child")) && !lives(Number(run.started?.pid)));
    await cancel(link, "headless");
    expect(lives(pidIn(join(root, "child")))).toBe(false);
    expect(await run.end()).toBe(0);
  });

  it("G9 ends at its timeout, and says that it was that", async () => {
    const { link } = await agentProcess();
    const run = await start(link, "timeout", { command: "sleep", args: ["300"], timeout: { nanos: 100_000_000 } });
    expect(await run.end()).toBe("SIGTERM");
    expect(run.exited?.cause).toBe(EndCause.TIMED_OUT);
  });

  it("G9 B56 honours a timeout of any length: 30 days and the largest do not fire early, 0 is none, a negative one is refused", async () => {
    const { link } = await agentProcess();
    for (const [id, seconds] of [
      ["month", 30n * 86_400n],
      ["longest", 315_576_000_000n],
      ["none", 0n],
    ] as const) {
      const run = await start(link, id, { command: "sh", args: ["-c", "sleep 0.2; echo slept"], timeout: { seconds } });
      expect(await run.end()).toBe(0);
      expect(run.text).toBe("slept\n");
    }
    const negative = start(link, "negative", { command: "true", timeout: { seconds: -1n } });
    expect(await refusalOf(negative)).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "timeout" } });
  });

  it("G10 B11 answers within the drain when a background job holds the output open, and the next command is unaffected", async () => {
    const { link } = await agentProcess();
    const started = performance.now();
    const run = await script(link, "held", "sleep 300 & echo ok");
    expect(await run.end()).toBe(0);
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(run.text).toBe("ok\n");
    expect(run.exited?.outputOpen).toBe(true);
    expect(namesOf(run.exited?.leftovers ?? [])).toEqual(["sleep"]);
    const leftover = Number(run.exited?.leftovers[0]?.pid);
    expect(lives(leftover)).toBe(true); // KEEP is the default.
    expect(await (await script(link, "next", "exit 3")).end()).toBe(3);
    process.kill(leftover, "SIGKILL");
  });

  it("G10 answers although a leftover never falls silent, and lets it write on", async () => {
    const { link, root } = await agentProcess();
    const run = await script(link, "chatty", "(while :; do echo on; echo >> alive; done) & echo $! > pid; echo ok", {
      drain: { seconds: 0n, nanos: 100_000_000 },
    });
    expect(await run.end()).toBe(0);
    expect(run.text.startsWith("ok\n") || run.text.includes("\nok\n")).toBe(true);
    const pid = pidIn(join(root, "pid"));
    const before = readFileSync(join(root, "alive")).length;
    await eventually(() => readFileSync(join(root, "alive")).length > before + 20);
    process.kill(pid, "SIGKILL");
  });

  it("G10 ends leftovers where that is asked for, and lists them", async () => {
    const { link, root } = await agentProcess();
    const run = await script(link, "tidy", "sleep 300 >/dev/null 2>&1 & echo $! > pid; exit 4", {
      leftovers: Leftovers.KILL,
    });
    expect(await run.end()).toBe(4);
    expect(namesOf(run.exited?.leftovers ?? [])).toEqual(["sleep"]);
    expect(lives(pidIn(join(root, "pid")))).toBe(false);
  });
});

describe("starting", () => {
  it("G12 B57 is harmed by no program that does not read its input", async () => {
    const agent = await agentProcess();
    const stdin = Buffer.alloc(3 * 1024 * 1024, "x");
    expect(await (await start(agent.link, "true", { command: "true", stdin })).end()).toBe(0);
    const missing = await start(agent.link, "missing", { command: "no-such-program", stdin });
    expect(await missing.end()).toBe(127);
    const head = await start(agent.link, "head", { command: "head", args: ["-c", "1"], stdin });
    expect(await head.end()).toBe(0);
    expect(head.text).toBe("x");
    const whole = await start(agent.link, "whole", { command: "wc", args: ["-c"], stdin });
    expect(await whole.end()).toBe(0);
    expect(whole.text.trim()).toBe(String(stdin.length));
    expect(lives(agent.pid)).toBe(true);
  });

  it("G12 ends input at once where there is none", async () => {
    const { link } = await agentProcess();
    const run = await start(link, "cat", { command: "cat" });
    expect(await run.end()).toBe(0);
  });

  it("gives outputs that a program can open by name, as a shell's redirections and tee do", async () => {
    const { link } = await agentProcess();
    const run = await script(
      link,
      "named",
      "echo one > /dev/stdout; echo two > /dev/stderr; echo three | tee /dev/stderr",
    );
    expect(await run.end()).toBe(0);
    expect(run.bytes("stdout").toString()).toBe("one\nthree\n");
    expect(run.bytes("stderr").toString()).toBe("two\nthree\n");
  });

  it("keeps such outputs after a program swept the agent's own folder away, as `rm -rf /` does", async () => {
    const { link, socket } = await agentProcess();
    const swept = await script(link, "sweep", `rm -rf ${dirname(socket)}/*`);
    expect(await swept.end()).toBe(0);
    for (const id of ["first", "second"]) {
      const run = await script(link, id, "echo out > /dev/stdout; echo err > /dev/stderr");
      expect(await run.end()).toBe(0);
      expect(run.bytes("stdout").toString()).toBe("out\n");
      expect(run.bytes("stderr").toString()).toBe("err\n");
    }
  });

  it("serves without mkfifo as well", async () => {
    const bin = mkdtempSync(join(tmpdir(), "holdfast-no-mkfifo-"));
    onTestFinished(() => rmSync(bin, { recursive: true }));
    for (const name of ["sh", "head", "sleep"]) symlinkSync(`/bin/${name}`, join(bin, name));
    const { link } = await agentProcess({ PATH: bin });
    const run = await script(link, "plain", "head -c 300000 /dev/zero; echo err >&2; exit 6");
    const slow = await script(link, "slow", "head -c 3000000 /dev/zero");
    slow.onData = () => slow.stream?.pause();
    expect(await run.end()).toBe(6);
    expect(run.bytes("stdout").length).toBe(300_000);
    expect(run.bytes("stderr").toString()).toBe("err\n");
    slow.onData = () => undefined;
    slow.stream?.resume();
    expect(await slow.end()).toBe(0);
    expect(slow.gaps).toEqual([]);
  });

  it("G13 answers like a shell for what is missing or not executable, with a message and no invented output", async () => {
    const { link, root } = await agentProcess();
    writeFileSync(join(root, "plain"), "#!/bin/sh\n", { mode: 0o644 });
    const missing = await start(link, "missing", { command: "./absent" });
    expect(await missing.end()).toBe(127);
    expect(missing.exited?.message).toContain("./absent");
    expect(missing.bytes()).toHaveLength(0);
    const plain = await start(link, "plain", { command: "./plain" });
    expect(await plain.end()).toBe(126);
    expect(plain.exited?.message).toContain("./plain");
    expect(await (await start(link, "directory", { command: root })).end()).toBe(126);
  });

  it("G13 refuses a directory that is missing, and never creates it", async () => {
    const { link, root } = await agentProcess();
    const refusal = await refusalOf(start(link, "cwd", { command: "pwd", cwd: "absent" }));
    expect(refusal).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "cwd" } });
    expect(existsSync(join(root, "absent"))).toBe(false);
    mkdirSync(join(root, "absent"));
    const now = await start(link, "cwd", { command: "pwd", cwd: "absent" }); // The id was not used up.
    expect(await now.end()).toBe(0);
    expect(now.text).toBe(`${join(root, "absent")}\n`);
  });

  it("refuses a directory outside the workspace, also behind a symbolic link", async () => {
    const { link, root } = await agentProcess();
    symlinkSync("/etc", join(root, "l"));
    mkdirSync(join(root, "inner"));
    symlinkSync("inner", join(root, "ok"));
    for (const cwd of ["l", "..", "/etc", "inner/../../"]) {
      expect(await refusalOf(start(link, "out", { command: "pwd", cwd }))).toMatchObject({
        reason: "PATH_OUTSIDE_WORKSPACE",
      });
    }
    expect(await (await start(link, "in", { command: "pwd", cwd: "ok" })).end()).toBe(0);
  });

  it("G13 gives a signal by its name", async () => {
    const { link } = await agentProcess();
    for (const signal of ["HUP", "KILL", "SEGV", "USR1"]) {
      expect(await (await script(link, signal, `kill -${signal} $$`)).end()).toBe(`SIG${signal}`);
    }
  });

  it("G1 G14 gives a sane environment, without anything of the agent", async () => {
    const { link, root } = await agentProcess({
      HOME: undefined,
      PATH: process.env.PATH,
      LANG: undefined,
      TERM: undefined,
    });
    const run = await start(link, "env", { command: "env", env: { EXTRA: "a=b\nc", LANG: "de_DE.UTF-8" } });
    expect(await run.end()).toBe(0);
    const lines = run.text.split("\n");
    const value = (name: string) => lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
    for (const name of ["HOME", "USER", "LOGNAME", "PATH", "TERM"]) expect(value(name), name).toBeTruthy();
    expect(value("LANG")).toBe("de_DE.UTF-8");
    expect(run.text).toContain("EXTRA=a=b\nc\n");
    expect(run.text).not.toContain("HOLDFAST_AGENT_");
    expect(value("HOME")?.startsWith(root)).toBe(false);
    const home = await script(link, "home", 'touch "$HOME/writable" && rm "$HOME/writable"');
    expect(await home.end()).toBe(0);
  });

  it.each([
    ["no command", {}, "command"],
    ["NUL in an argument", { command: "echo", args: ["a", "b\0c"] }, "args[1]"],
    ["a nameless variable", { command: "env", env: { "": "x" } }, "env"],
    ["a variable with = in its name", { command: "env", env: { "A=B": "x" } }, "env"],
    ["a directory with NUL", { command: "pwd", cwd: "a\0b" }, "cwd"],
    ["too long an input", { command: "cat", stdin: Buffer.alloc(3 * 1024 * 1024 + 1) }, "stdin"],
  ])("refuses %s by its field, and starts nothing", async (_name, command, field) => {
    const { link } = await agentProcess();
    expect(await refusalOf(start(link, "bad", command))).toMatchObject({
      reason: "INVALID_REQUEST",
      metadata: { field },
    });
    expect((await link.call(AgentService.method.health, {}, { within: soon() })).runningExecutions).toBe(0);
  });

  it("refuses arguments beyond the kernel's limit, and survives", async () => {
    const { link } = await agentProcess();
    const args = Array.from({ length: 30 }, () => "x".repeat(100_000));
    expect(await refusalOf(start(link, "e2big", { command: "true", args }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
    expect(await (await start(link, "e2big", { command: "true" })).end()).toBe(0);
  });
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}
