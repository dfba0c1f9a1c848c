import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { AttachMode, SessionKind, SessionService } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { systemClock } from "@holdfast/async";
import { sessionRingMaxBytes, sessionsMax } from "@holdfast/contract";
import { LinkClient } from "@holdfast/guest-link";
import { describe, expect, it, onTestFinished } from "vitest";
import { readProcess } from "../execution/processes.ts";
import { type AgentProcess, agentProcess, eventually, host, soon, token } from "../testing/agent-process.testing.ts";
import { attachTo, openScript, openTerminal, write } from "../testing/followed-session.testing.ts";

const { openSession, resizeSession, signalSession, killSession, readSession, listSessions, detachSession } =
  SessionService.method;

const kill = (agent: AgentProcess, sessionId: string, signal = "") =>
  agent.link.call(killSession, { sessionId, signal }, { within: soon(15_000) });

const read = async (agent: AgentProcess, sessionId: string, more: object = {}) =>
  await agent.link.call(readSession, { sessionId, ...more }, { within: soon(15_000) });

/** Another caller of the agent. */
function otherLink({ port }: AgentProcess): LinkClient {
  const link = new LinkClient({ host, port, token }, systemClock);
  onTestFinished(() => link.close());
  return link;
}

describe("a terminal", () => {
  it("G15 is a real one with its size before the program runs, in a kernel session of its own", async () => {
    const agent = await agentProcess();
    const script = "tty; stty size; ps -o sid=,tpgid= -p $$ | xargs; echo $$; ls -l /proc/self/fd";
    const opened = await openScript(agent.link, "t", script, { size: { columns: 101, rows: 37 } });
    const reader = await attachTo(agent.link, "t");
    expect(await reader.end()).toBe(0);
    const [tty, size, session, pid, ...descriptors] = reader.text.trim().split("\r\n");
    expect(tty).toMatch(/^\/dev\/pts\/\d+$/);
    expect(size).toBe("37 101");
    expect(session).toBe(`${pid} ${pid}`);
    expect(opened.pid).toBe(BigInt(pid ?? 0));
    // Nothing of the agent is inherited: no socket, no terminal's other side, no file.
    expect(descriptors.join()).not.toMatch(/socket:|ptmx|anon_inode|\.node|main\.mjs/);
    expect(opened).toMatchObject({ kind: SessionKind.TERMINAL, command: "sh", size: { columns: 101, rows: 37 } });
  });

  it("G14 G15 runs the user's shell, as a login shell if asked, with a sane environment and nothing of the agent's", async () => {
    const agent = await agentProcess({ SHELL: "/bin/bash", TERM: "" });
    await openTerminal(agent.link, "shell", { login: true, env: { PS1: "$ ", GREETING: "grüß" } });
    const shell = await attachTo(agent.link, "shell");
    await shell.type(
      "shopt -q login_shell && echo login-$((1+1)); echo $GREETING $TERM; env | grep -c HOLDFAST_AGENT; exit 7\n",
    );
    expect(await shell.end()).toBe(7);
    expect(shell.text).toContain("login-2\r\n");
    expect(shell.text).toContain("grüß xterm-256color\r\n0\r\n");
    await openTerminal(agent.link, "plain", { env: { SHELL: "/no/such/shell" } });
    const plain = await attachTo(agent.link, "plain");
    await plain.type("shopt -q login_shell || echo plain-$((1+1)); exit\n");
    expect(await plain.end()).toBe(0);
    expect(plain.text).toContain("plain-2\r\n");
  });

  it("G13 a program that is missing or cannot be executed is a result, as in a shell", async () => {
    const agent = await agentProcess();
    writeFileSync(join(agent.root, "data"), "no program");
    const missing = await openTerminal(agent.link, "missing", { command: "no-such-program" });
    expect(missing.exit).toMatchObject({ outcome: { value: 127 }, message: "no-such-program: no such program" });
    const forbidden = await openTerminal(agent.link, "forbidden", { command: "./data" });
    expect(forbidden.exit).toMatchObject({ outcome: { value: 126 } });
    expect(await (await attachTo(agent.link, "missing")).end()).toBe(127);
    await expect(openTerminal(agent.link, "cwd", { command: "true", cwd: "nowhere" })).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
    });
    await expect(openTerminal(agent.link, "out", { command: "true", cwd: "/" })).rejects.toMatchObject({
      reason: "PATH_OUTSIDE_WORKSPACE",
    });
  });

  it("B01 G22 brings the last byte before the exit, 200 times", async () => {
    const agent = await agentProcess();
    for (let at = 0; at < 200; at += 1) {
      const id = `run-${at}`;
      await openScript(agent.link, id, "seq 1 2000; exit 3");
      const reader = await attachTo(agent.link, id);
      expect(await reader.end()).toBe(3);
      expect(reader.bytes.length).toBe(Number(reader.exited?.nextOffset));
      expect(reader.text.endsWith("1999\r\n2000\r\n")).toBe(true);
    }
  }, 60_000);

  it("B01 G22 also of much output: 200,000 lines, with the gap told that the ring made", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "long", "seq 1 200000; exit 3");
    const reader = await attachTo(agent.link, "long");
    expect(await reader.end()).toBe(3);
    const lost = reader.gaps.reduce((sum, { from, to }) => sum + Number(to - from), 0);
    expect(reader.bytes.length + lost).toBe(1_488_895);
    expect(reader.text.endsWith("200000\r\n")).toBe(true);
  });

  it("B03 keeps what is printed before anybody is attached, from the first byte", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "early", "head -c 300000 /dev/zero | tr '\\0' 'x'; echo done; sleep 100");
    await until(async () => Number((await list(agent)).sessions[0]?.nextOffset) >= 300_006);
    const reader = await attachTo(agent.link, "early");
    await reader.until(() => reader.position >= 300_006);
    expect(reader.gaps).toEqual([]);
    expect(reader.text).toBe(`${"x".repeat(300_000)}done\r\n`);
  });

  it("B25 G4 bytes come out as they went in, wherever reads split", async () => {
    const agent = await agentProcess();
    const lengths = [4_090, 4_093, 4_095, 4_096, 4_100, 16_383, 65_535, 65_540];
    for (const length of lengths) {
      const id = `emoji-${length}`;
      await openScript(
        agent.link,
        id,
        `head -c ${length} /dev/zero | tr '\\0' a; printf '\\360\\237\\230\\200\\377\\376'`,
      );
      const reader = await attachTo(agent.link, id);
      expect(await reader.end()).toBe(0);
      const expected = Buffer.concat([Buffer.alloc(length, "a"), Buffer.from([0xf0, 0x9f, 0x98, 0x80, 0xff, 0xfe])]);
      expect(reader.bytes.equals(expected)).toBe(true);
      expect(Buffer.from((await read(agent, id)).data).equals(expected)).toBe(true);
    }
  });

  it("B95 a heredoc, an open quote and Ctrl-C leave the shell usable, and nothing leaks into another session", async () => {
    const agent = await agentProcess();
    const bash = { command: "/bin/bash", args: ["--norc", "--noprofile"], env: { PS1: "$ " } };
    await openTerminal(agent.link, "a", bash);
    await openTerminal(agent.link, "b", bash);
    const [a, b] = [await attachTo(agent.link, "a"), await attachTo(agent.link, "b")];
    const prompted = /\$ $/;
    await a.until(() => prompted.test(a.text)); // What is typed before is taken by the terminal, and Ctrl-C drops it there.
    await a.type("cat <<END\none\ntwo\nthree\nEND\n");
    await a.type("echo ne''xt; X=1\n");
    await a.until(() => a.text.includes("next\r\n"));
    await a.type("echo 'open\n");
    await a.until(() => /open\r\n[^>]*> $/.test(a.text));
    await a.type("\x03");
    await a.until(() => /\^C[^$]*\$ $/.test(a.text));
    await a.type("echo af''ter\n");
    await a.until(() => a.text.includes("after\r\n"));
    await b.type("echo other$X-$((1+1)); exit\n");
    expect(await b.end()).toBe(0);
    expect(b.text).toContain("other-2");
    expect(b.text).not.toContain("three");
  });

  it("G19 resizes, and the program hears SIGWINCH", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "size", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    const reader = await attachTo(agent.link, "size");
    await reader.until(() => reader.text.includes("ready"));
    const size = { columns: 132, rows: 50 };
    await agent.link.call(resizeSession, { sessionId: "size", size, attachmentId: reader.id }, { within: soon() });
    await reader.until(() => reader.text.includes("50 132"));
    const again = await attachTo(agent.link, "size", { size: { columns: 90, rows: 30 } });
    await again.until(() => again.text.includes("30 90"));
    expect((await list(agent)).sessions[0]?.size).toMatchObject({ columns: 90, rows: 30 });
    for (const wrong of [
      { columns: 0, rows: 5 },
      { columns: 5, rows: 65_536 },
    ]) {
      const call = agent.link.call(resizeSession, { sessionId: "size", size: wrong }, { within: soon() });
      await expect(call).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    }
  });
});

const list = (agent: AgentProcess) => agent.link.call(listSessions, {}, { within: soon() });

describe("input", () => {
  it("B23 a paste of 1 MiB arrives whole at a program that reads slowly", async () => {
    const agent = await agentProcess();
    await openScript(
      agent.link,
      "paste",
      "stty raw -echo; echo ready; for i in 1 2 3 4 5 6 7 8; do head -c 131072 >> pasted; sleep 0.05; done; echo done",
    );
    const reader = await attachTo(agent.link, "paste");
    await reader.until(() => reader.text.includes("ready"));
    const paste = Buffer.alloc(1024 * 1024);
    for (let at = 0; at < paste.length; at += 1) paste[at] = (at * 31 + (at >> 8)) & 0xff;
    const parts = Array.from({ length: 16 }, (_, at) => paste.subarray(at * 65_536, (at + 1) * 65_536));
    // Four at once: within the window.
    for (let at = 0; at < parts.length; at += 4) {
      await Promise.all(parts.slice(at, at + 4).map((part) => reader.type(part)));
    }
    expect(await reader.end()).toBe(0);
    expect(readFileSync(join(agent.root, "pasted")).equals(paste)).toBe(true);
  });

  it("G19 is written once over lost answers and from two callers, also when the link is cut in the middle", async () => {
    const agent = await agentProcess();
    await openScript(
      agent.link,
      "once",
      "stty raw -echo; echo ready; until [ -e go ]; do sleep 0.02; done; head -c 131072 > got; echo done; sleep 100",
    );
    const reader = await attachTo(agent.link, "once");
    await reader.until(() => reader.text.includes("ready"));
    const [one, two] = [Buffer.alloc(65_536, "1"), Buffer.alloc(65_536, "2")];
    const doomed = otherLink(agent);
    // The terminal is full before all of it is in: the answer cannot come, and the link goes.
    const cut = [write(doomed, "once", reader.id, 1n, one), write(doomed, "once", reader.id, 2n, two)];
    const failures = Promise.allSettled(cut);
    await until(async () => (await list(agent)).sessions[0]?.lastInputAt !== undefined);
    doomed.close();
    expect((await failures).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const other = otherLink(agent);
    const again = [write(other, "once", reader.id, 2n, two), write(agent.link, "once", reader.id, 1n, one)];
    writeFileSync(join(agent.root, "go"), "");
    await Promise.all(again);
    expect(await write(agent.link, "once", reader.id, 1n, one)).toMatchObject({ nextSequence: 3n });
    await reader.until(() => reader.text.includes("done"));
    expect(readFileSync(join(agent.root, "got")).equals(Buffer.concat([one, two]))).toBe(true);
  });

  it("G19 refuses more than 64 KiB, a sequence of 0, and the attachment of nobody", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "in", "cat");
    const reader = await attachTo(agent.link, "in");
    await expect(write(agent.link, "in", reader.id, 1n, Buffer.alloc(65_537))).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
    });
    await expect(write(agent.link, "in", reader.id, 0n, "x")).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    await expect(write(agent.link, "in", "nobody", 1n, "x")).rejects.toMatchObject({ reason: "ATTACHMENT_NOT_FOUND" });
    await expect(write(agent.link, "none", reader.id, 1n, "x")).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
    await kill(agent, "in");
    await expect(write(agent.link, "in", reader.id, 1n, "x")).rejects.toMatchObject({ reason: "ATTACHMENT_NOT_FOUND" });
  });
});

describe("attachments", () => {
  it("G18 a new exclusive one ends the old with ATTACHMENT_DISPLACED, and observers stay", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "s", "stty -echo; while read -r line; do echo got:$line; done");
    const observer = await attachTo(agent.link, "s", { mode: AttachMode.OBSERVE });
    const first = await attachTo(agent.link, "s");
    await first.type("one\n");
    await first.until(() => first.text.includes("got:one"));
    const second = await attachTo(agent.link, "s", { fromOffset: BigInt(first.position) });
    expect(await first.over).toMatchObject({
      reason: "ATTACHMENT_DISPLACED",
      metadata: { by: second.id, last_sequence: "1" },
    });
    await expect(write(agent.link, "s", first.id, 2n, "x\n")).rejects.toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
    await second.type("two\n");
    await observer.until(() => observer.text.includes("got:two"));
    await expect(write(agent.link, "s", observer.id, 1n, "x\n")).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    expect(observer.attached?.nextInputSequence).toBe(0n);
    expect((await list(agent)).sessions[0]).toMatchObject({ attached: true });
  });

  it("G17 G19 one outlives its stream: cut, it is taken up with its input where it stood, and the program never noticed", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "s", "stty -echo; echo ready; while read -r line; do echo got:$line; done");
    const first = await attachTo(agent.link, "s");
    await first.until(() => first.text.includes("ready"));
    await first.type("one\n");
    await first.until(() => first.text.includes("got:one"));
    first.stream?.destroy(new Error("cut by the test"));
    await first.over;
    await until(async () => (await list(agent)).sessions[0]?.attached === false);
    await write(agent.link, "s", first.id, 2n, "two\n"); // Also while it has no stream.
    const again = await attachTo(agent.link, "s", { attachmentId: first.id, fromOffset: BigInt(first.position) });
    expect(again.id).toBe(first.id);
    expect(again.attached?.nextInputSequence).toBe(3n);
    await again.type("three\n");
    await again.until(() => again.text.includes("got:three"));
    expect(first.text + again.text).toBe("ready\r\ngot:one\r\ngot:two\r\ngot:three\r\n");
  });

  it("B27 50 cuts at random moments: no byte twice, none missing", async () => {
    const agent = await agentProcess();
    await openScript(
      agent.link,
      "count",
      "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done; sleep 0.2; while [ $i -lt 4000 ]; do echo $i; i=$((i+1)); done",
    );
    let text = "";
    let exited = false;
    let attachmentId = "";
    for (let cuts = 0; !exited; cuts += 1) {
      const from = Buffer.byteLength(text);
      const reader = await attachTo(agent.link, "count", { fromOffset: BigInt(from), attachmentId });
      attachmentId = reader.id;
      if (cuts < 50) {
        const bytes = 1 + ((cuts * 397) % 700);
        await Promise.race([reader.until(() => reader.position >= from + bytes), reader.over]);
        reader.stream?.destroy(new Error("cut by the test"));
      } else await reader.over;
      text += reader.text;
      exited = reader.exited !== undefined;
    }
    expect(text).toBe(Array.from({ length: 4_000 }, (_, at) => `${at}\r\n`).join(""));
  });

  it("B30 G18 a reader that stands still holds nobody back, and is told what it lost when it goes on", async () => {
    const agent = await agentProcess();
    const lines = 3_000_000;
    await openScript(agent.link, "much", `until [ -e go ]; do sleep 0.02; done; seq 1 ${lines}; echo end`);
    const still = await attachTo(agent.link, "much");
    still.stream?.pause();
    const reader = await attachTo(otherLink(agent), "much", { mode: AttachMode.OBSERVE });
    let last = "";
    reader.onData = (bytes) => {
      last = bytes.toString("latin1");
    };
    const before = agent.rss();
    writeFileSync(join(agent.root, "go"), "");
    expect(await reader.end()).toBe(0);
    expect(last.endsWith("end\r\n")).toBe(true);
    expect(agent.rss() - before).toBeLessThan(64 * 1024 * 1024);
    still.stream?.resume();
    expect(await still.end()).toBe(0);
    const lost = still.gaps.reduce((sum, { from, to }) => sum + Number(to - from), 0);
    expect(lost).toBeGreaterThan(sessionRingMaxBytes);
    expect(still.bytes.length + lost).toBe(Number(still.exited?.nextOffset));
  }, 60_000);

  it("G18 the reason of a forced end reaches also a reader that stood still: it comes back and is told", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "s", "yes");
    const still = await attachTo(agent.link, "s");
    still.stream?.pause();
    await attachTo(agent.link, "s", { fromOffset: BigInt(still.position) });
    await expect(attachTo(agent.link, "s", { attachmentId: still.id })).rejects.toMatchObject({
      reason: "ATTACHMENT_DISPLACED",
    });
    still.stream?.resume();
    expect(await still.over).toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
  });

  it("detaches by name: the stream ends with a reason, the program goes on", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "s", "sleep 100");
    const reader = await attachTo(agent.link, "s");
    await agent.link.call(detachSession, { sessionId: "s", attachmentId: reader.id }, { within: soon() });
    expect(await reader.over).toMatchObject({ reason: "ATTACHMENT_NOT_FOUND" });
    const [row] = (await list(agent)).sessions;
    expect(row?.exit).toBeUndefined();
    expect(row?.attached).toBe(false);
  });

  it("G5a a raise ends the exclusive attachment by name, lets observers read on and the program live", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "s", "stty raw -echo; echo ready; until [ -e go ]; do sleep 0.02; done; cat > got");
    const observer = await attachTo(agent.link, "s", { mode: AttachMode.OBSERVE });
    const holder = await attachTo(agent.link, "s");
    await holder.until(() => holder.text.includes("ready"));
    // More than the terminal takes: it is under way when the raise comes.
    const parts = [holder.type(Buffer.alloc(65_536, "x")), holder.type(Buffer.alloc(65_536, "x"))];
    const refusals = Promise.allSettled(parts);
    await until(async () => (await list(agent)).sessions[0]?.lastInputAt !== undefined);
    await agent.link.call(AgentService.method.fence, { epoch: 5n }, { within: soon() });
    writeFileSync(join(agent.root, "go"), "");
    expect(await holder.over).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    const [, second] = await refusals;
    expect(second).toMatchObject({ status: "rejected", reason: { reason: "HOLDER_EPOCH_SUPERSEDED" } });
    for (const call of [
      () => openTerminal(agent.link, "new", { command: "true" }),
      () => attachTo(agent.link, "s"),
      () => kill(agent, "s"),
      () => agent.link.call(signalSession, { sessionId: "s", signal: "INT" }, { within: soon() }),
      () => agent.link.call(resizeSession, { sessionId: "s", size: { columns: 1, rows: 1 } }, { within: soon() }),
    ]) {
      await expect(call()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    }
    const next = await attachTo(agent.link, "s", {}, 5n);
    await next.type("end", 5n);
    const got = join(agent.root, "got");
    await eventually(() => existsSync(got) && readFileSync(got, "latin1").endsWith("end"));
    expect(readFileSync(got, "latin1")).toMatch(/^x*end$/);
    expect(observer.exited).toBeUndefined();
    expect((await attachTo(agent.link, "s", { mode: AttachMode.OBSERVE })).attached).toBeDefined();
  });
});

describe("the registry", () => {
  it("G16 holds 64: ended ones make room, the first that ended first; running ones never do", async () => {
    const agent = await agentProcess();
    for (let at = 0; at < sessionsMax; at += 1) await openTerminal(agent.link, `s${at}`, { command: "cat" });
    await expect(openTerminal(agent.link, "more", { command: "cat" })).rejects.toMatchObject({
      reason: "SESSION_CAPACITY",
      metadata: { limit: "64", setting: "sessionsMax" },
    });
    await kill(agent, "s7");
    await kill(agent, "s3");
    await openTerminal(agent.link, "more", { command: "cat" });
    const ids = (await list(agent)).sessions.map(({ sessionId }) => sessionId);
    expect(ids).toHaveLength(64);
    expect(ids).toContain("s3");
    expect(ids).not.toContain("s7");
    await expect(read(agent, "s7")).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
    expect((await agent.link.call(AgentService.method.health, {}, { within: soon() })).runningSessions).toBe(63);
  });

  it("G16 an id that runs is SESSION_EXISTS, one that has ended may be started again at once; odd ids are refused", async () => {
    const agent = await agentProcess();
    await openTerminal(agent.link, "a.B_c-1", { command: "cat" });
    await expect(openTerminal(agent.link, "a.B_c-1", { command: "cat" })).rejects.toMatchObject({
      reason: "SESSION_EXISTS",
    });
    const both = await Promise.allSettled([
      openTerminal(agent.link, "race", { command: "cat" }),
      openTerminal(agent.link, "race", { command: "cat" }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    await kill(agent, "a.B_c-1");
    await openScript(agent.link, "a.B_c-1", "echo again");
    const reader = await attachTo(agent.link, "a.B_c-1");
    expect(await reader.end()).toBe(0);
    expect(reader.text).toBe("again\r\n");
    for (const id of ["", "a/b", "x".repeat(65), "a b", "ü"]) {
      await expect(openTerminal(agent.link, id, { command: "true" })).rejects.toMatchObject({
        reason: "INVALID_REQUEST",
      });
    }
    for (const id of [".", ".."]) expect((await openTerminal(agent.link, id, { command: "cat" })).sessionId).toBe(id);
  });

  it("B21 leaves no descriptor behind: 300 sessions ended by themselves, by a kill, and with a child that holds the terminal", async () => {
    const agent = await agentProcess();
    const open = (): number => readdirSync(`/proc/${agent.pid}/fd`).length;
    await openScript(agent.link, "warm", "true");
    await (await attachTo(agent.link, "warm")).end();
    const before = open();
    for (let at = 0; at < 300; at += 1) {
      const id = `s${at}`;
      if (at % 3 === 0) await openScript(agent.link, id, "exit 0");
      else if (at % 3 === 1) await openScript(agent.link, id, "sleep 100");
      else await openScript(agent.link, id, "setsid sh -c 'trap \"\" HUP; sleep 0.2' & exit 0");
      if (at % 3 === 1) await kill(agent, id);
      else await (await attachTo(agent.link, id)).end();
    }
    await eventually(() => open() <= before + 5, 10_000);
    await openScript(agent.link, "after", "echo on");
    expect(await (await attachTo(agent.link, "after")).end()).toBe(0);
  }, 120_000);

  it("lists what there is, without an environment", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "row", "echo hello; read -r x", { env: { SECRET: "hidden" }, clientBound: true });
    const reader = await attachTo(agent.link, "row");
    await reader.until(() => reader.text.includes("hello"));
    const [row] = (await list(agent)).sessions;
    expect(row).toMatchObject({
      nextOffset: 7n,
      droppedBytes: 0n,
      attached: true,
      clientBound: true,
      args: ["-c", "echo hello; read -r x"],
    });
    expect(row?.lastOutputAt).toBeDefined();
    expect(row?.lastInputAt).toBeUndefined();
    expect(JSON.stringify(row, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      "hidden",
    );
  });
});

describe("signals and the end", () => {
  it("G20 go to the foreground process group by name; unknown ones are refused", async () => {
    const agent = await agentProcess();
    await openTerminal(agent.link, "s", { command: "/bin/bash", args: ["--norc", "--noprofile"], env: { PS1: "$ " } });
    const shell = await attachTo(agent.link, "s");
    await shell.until(() => shell.text.endsWith("$ "));
    await shell.type("sh -c 'trap \"echo heard-$((1+0))\" USR1; echo up-$((1+0)); while :; do sleep 0.05; done'\n");
    await shell.until(() => shell.text.includes("up-1"));
    const signal = (name: string) =>
      agent.link.call(signalSession, { sessionId: "s", signal: name, attachmentId: shell.id }, { within: soon() });
    await signal("SIGUSR1");
    await shell.until(() => shell.text.includes("heard-1"));
    await signal("INT"); // Ends what is in the foreground; the shell goes on.
    await shell.until(() => shell.text.endsWith("$ "));
    await shell.type("echo still-$((1+1))\n");
    await shell.until(() => shell.text.includes("still-2"));
    for (const unknown of ["SEGV", "usr1", "9", ""]) {
      await expect(signal(unknown)).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    }
  });

  it("G20 a kill after the exit reaches what the program left behind", async () => {
    const agent = await agentProcess();
    await openScript(
      agent.link,
      "s",
      "setsid sh -c 'trap \"\" HUP; sleep 1000 < /dev/null > /dev/null 2>&1' & sleep 0.1; exit 4",
    );
    const reader = await attachTo(agent.link, "s");
    expect(await reader.end()).toBe(4);
    await eventually(() => sleepersIn(agent.root) === 1);
    expect((await kill(agent, "s")).session?.exit?.outcome).toEqual({ case: "code", value: 4 });
    expect(sleepersIn(agent.root)).toBe(0);
  });

  it("G17 a program that is bound to its client ends with it, and with everything in its session", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "bound", "setsid sleep 1000 & echo ready; sleep 1001", { clientBound: true });
    const client = await attachTo(agent.link, "bound");
    await client.until(() => client.text.includes("ready"));
    await eventually(() => sleepersIn(agent.root) === 2);
    client.stream?.end({ clientClosed: true });
    await until(async () => (await list(agent)).sessions[0]?.exit !== undefined);
    await eventually(() => sleepersIn(agent.root) === 0);
    await openScript(agent.link, "free", "echo ready; sleep 1001");
    const free = await attachTo(agent.link, "free");
    await free.until(() => free.text.includes("ready"));
    free.stream?.end({ clientClosed: true });
    await until(async () => (await list(agent)).sessions[1]?.attached === false);
    expect((await list(agent)).sessions[1]?.exit).toBeUndefined();
  });
});

/** How many `sleep` run in a workspace. */
function sleepersIn(root: string): number {
  return readdirSync("/proc").filter((entry) => {
    const found = /^\d+$/.test(entry) ? readProcess(Number(entry)) : undefined;
    if (found?.name !== "sleep" || found.state === "Z") return false;
    try {
      return readFileSync(`/proc/${entry}/environ`, "latin1").includes(`PWD=${root}`) || cwdOf(entry) === root;
    } catch {
      return false;
    }
  }).length;
}

function cwdOf(pid: string): string {
  return readlinkSync(`/proc/${pid}/cwd`);
}

describe("reading without attaching", () => {
  it("G21 reads from an offset, at most so much, and waits for more", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "r", "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 2");
    await until(async () => (await read(agent, "r")).nextOffset === 5n);
    expect(Buffer.from((await read(agent, "r", { fromOffset: 1n, maxBytes: 2 })).data).toString()).toBe("ne");
    const waiting = read(agent, "r", { fromOffset: 5n, waitMs: 10_000 });
    writeFileSync(join(agent.root, "go"), "");
    expect(Buffer.from((await waiting).data).toString()).toBe("two\r\n");
    const atEnd = await read(agent, "r", { fromOffset: 10n, waitMs: 10_000 });
    expect(atEnd).toMatchObject({ nextOffset: 10n, session: { exit: { outcome: { value: 2 } } } });
    await expect(read(agent, "r", { fromOffset: 11n })).rejects.toMatchObject({ reason: "OFFSET_OUT_OF_RANGE" });
    const most = await read(agent, "r", { maxBytes: 1024 * 1024, waitMs: 60_000 });
    expect(Buffer.from(most.data).toString()).toBe("one\r\ntwo\r\n");
    await expect(read(agent, "r", { maxBytes: 1024 * 1024 + 1 })).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    await expect(read(agent, "r", { waitMs: 60_001 })).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    const quiet = await openScript(agent.link, "q", "sleep 100");
    expect(quiet.exit).toBeUndefined();
    const startedAt = performance.now();
    expect(await read(agent, "q", { waitMs: 100 })).toMatchObject({ nextOffset: 0n });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
  });

  it("G16 tells what the ring no longer has", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "r", "head -c 3000000 /dev/zero | tr '\\0' x; echo end");
    expect(await (await attachTo(agent.link, "r")).end()).toBe(0);
    const { offset, data, session } = await read(agent, "r", { maxBytes: 1024 });
    expect(Number(offset)).toBe(3_000_005 - sessionRingMaxBytes);
    expect(data).toHaveLength(1024);
    expect(session?.droppedBytes).toBe(offset);
  });
});

describe("detached programs", () => {
  const openDetached = (agent: AgentProcess, sessionId: string, text: string) =>
    agent.link.call(
      openSession,
      { sessionId, kind: SessionKind.DETACHED, command: "sh", args: ["-c", text] },
      { within: soon() },
    );

  it("run without a terminal, with no input, both outputs kept as one", async () => {
    const agent = await agentProcess();
    await openDetached(agent, "d", "tty; cat; echo out; echo err >&2; echo by-name > /dev/stderr; exit 5");
    const reader = await attachTo(agent.link, "d", { mode: AttachMode.OBSERVE });
    expect(await reader.end()).toBe(5);
    expect(reader.text).toBe("not a tty\nout\nerr\nby-name\n");
    await openDetached(agent, "in", "sleep 100");
    const attached = await attachTo(agent.link, "in");
    await expect(write(agent.link, "in", attached.id, 1n, "x")).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    await agent.link.call(signalSession, { sessionId: "in", signal: "TERM" }, { within: soon() });
    expect(await attached.end()).toBe("SIGTERM");
  });

  it("B36 keeps what it writes while nobody is attached: all of it is read after its end, in order", async () => {
    const agent = await agentProcess();
    await openDetached(
      agent,
      "d",
      "head -c 300000 /dev/zero | tr '\\0' x; for i in 1 2 3; do sleep 0.05; echo line $i; done; exit 9",
    );
    await until(async () => (await list(agent)).sessions[0]?.exit !== undefined);
    const reader = await attachTo(agent.link, "d", { mode: AttachMode.OBSERVE });
    expect(await reader.end()).toBe(9);
    expect(reader.gaps).toEqual([]);
    expect(reader.text).toBe(`${"x".repeat(300_000)}line 1\nline 2\nline 3\n`);
    const [row] = (await list(agent)).sessions;
    const ranMs = Number(row?.exit?.at?.seconds) * 1_000 - Number(row?.startedAt?.seconds) * 1_000;
    expect(ranMs).toBeLessThan(10_000); // Nobody held it back.
  });

  it("B59 an endless one costs a ring, and is read with a gap", async () => {
    const agent = await agentProcess();
    const before = agent.rss();
    await openDetached(agent, "yes", "yes");
    await until(async () => Number((await list(agent)).sessions[0]?.nextOffset) > 50_000_000, 30_000);
    expect(agent.rss() - before).toBeLessThan(64 * 1024 * 1024);
    const reader = await attachTo(agent.link, "yes", { mode: AttachMode.OBSERVE });
    await reader.until(() => reader.bytes.length > 0);
    expect(reader.gaps.length).toBeGreaterThan(0);
    await kill(agent, "yes");
  }, 60_000);

  it("are refused what only terminals have", async () => {
    const agent = await agentProcess();
    const detached = { kind: SessionKind.DETACHED, command: "true" };
    for (const wrong of [
      { ...detached, command: "" },
      { ...detached, clientBound: true },
      { ...detached, size: { columns: 1, rows: 1 } },
      { kind: SessionKind.UNSPECIFIED },
      { kind: SessionKind.TERMINAL, command: "sh", login: true },
      { kind: SessionKind.TERMINAL, args: ["x"] },
      { kind: SessionKind.TERMINAL, env: { "A=B": "c" } },
    ]) {
      const call = agent.link.call(openSession, { sessionId: "w", ...wrong }, { within: soon() });
      await expect(call).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    }
  });
});

// Each waits for seconds, by the agent's own bounds, and for nothing of the other's.
describe.concurrent("ends that take their time", () => {
  it("G20 a kill reaches the whole kernel session and what left it, and answers the true state", async ({
    onTestFinished: finished,
  }) => {
    const agent = await agentProcess({}, undefined, { finished });
    await openScript(
      agent.link,
      "s",
      "trap '' TERM HUP; setsid sh -c 'trap \"\" HUP TERM; sleep 1000' & (sleep 1001 &) ; echo ready; sleep 1002",
    );
    const reader = await attachTo(agent.link, "s");
    await reader.until(() => reader.text.includes("ready"));
    const alive = (): number => sleepersIn(agent.root);
    await eventually(() => alive() === 3);
    const told = await kill(agent, "s", "TERM");
    expect(told.session?.exit).toBeUndefined(); // It ignores that; nothing more is sent.
    const killed = await kill(agent, "s");
    expect(killed.session?.exit?.outcome).toEqual({ case: "signal", value: "SIGKILL" });
    expect(await reader.end()).toBe("SIGKILL");
    expect(alive()).toBe(0);
    expect((await kill(agent, "s")).session?.exit?.outcome).toEqual({ case: "signal", value: "SIGKILL" });
    await expect(kill(agent, "s", "NOPE")).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
  }, 30_000);

  it("G26 B47 ends terminals, their readers have the last byte and the end, and nothing new is opened", async ({
    onTestFinished: finished,
  }) => {
    const agent = await agentProcess({}, undefined, { finished });
    const saving = "trap 'echo saved > saved; echo bye; exit 6' TERM; echo up; while :; do sleep 0.05; done";
    await openScript(agent.link, "polite", saving);
    await openTerminal(agent.link, "shell", { command: "/bin/sh", args: ["-i"] }); // Ignores SIGTERM.
    const [polite, shell] = [await attachTo(agent.link, "polite"), await attachTo(agent.link, "shell")];
    await polite.until(() => polite.text.includes("up"));
    await shell.until(() => shell.text !== ""); // Its prompt: it ignores SIGTERM from then on.
    agent.child.kill("SIGTERM");
    await eventually(() => agent.log().includes("stopping"));
    await expect(openTerminal(agent.link, "late", { command: "true" })).rejects.toMatchObject({
      reason: "AGENT_RETIRING",
    });
    expect(await polite.end()).toBe(6);
    expect(polite.text.endsWith("bye\r\n")).toBe(true);
    expect(await shell.end()).toBe("SIGKILL");
    expect(await agent.exited).toBe(0);
    expect(readFileSync(join(agent.root, "saved"), "utf8")).toBe("saved\n");
  }, 30_000);
});

describe("readers that go at once", () => {
  it("B51 leave nothing behind: 400 attachments cut as soon as they are asked for", async () => {
    const agent = await agentProcess();
    await openScript(agent.link, "s", "yes");
    const open = (): number => readdirSync(`/proc/${agent.pid}/fd`).length;
    (await attachTo(agent.link, "s", { mode: AttachMode.OBSERVE })).stream?.destroy(new Error("cut by the test"));
    await eventually(() => open() > 0);
    const before = open();
    for (let at = 0; at < 400; at += 1) {
      const listener = { message: () => undefined, data: () => undefined, over: () => undefined };
      const mode = at % 2 === 0 ? AttachMode.EXCLUSIVE : AttachMode.OBSERVE;
      const request = { sessionId: "s", mode };
      const stream = await agent.link.open(SessionService.method.attachSession, request, listener, { within: soon() });
      if (at % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      stream.destroy(new Error("cut by the test"));
    }
    await eventually(() => open() <= before + 5);
    await until(async () => (await list(agent)).sessions[0]?.attached === false);
    await kill(agent, "s");
  });
});

describe("a restart of the agent", () => {
  it("B32 an old id is SESSION_LOST, never a silent new shell; what ended its record before is not", async () => {
    const first = await agentProcess();
    await openTerminal(first.link, "shell", { command: "cat" });
    const { bootId } = await list(first);
    first.child.kill("SIGKILL");
    await first.exited;
    const second = await agentProcess({ HOLDFAST_AGENT_SOCKET: first.socket, HOLDFAST_WORKSPACE_ROOT: first.root });
    for (const call of [
      () => attachTo(second.link, "shell"),
      () => read(second, "shell"),
      () => kill(second, "shell"),
    ]) {
      await expect(call()).rejects.toMatchObject({ reason: "SESSION_LOST", metadata: { boot_id: bootId } });
    }
    await expect(read(second, "never")).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
    await expect(openTerminal(second.link, "new", { expectedBootId: bootId })).rejects.toMatchObject({
      reason: "GUEST_RESTARTED",
    });
    await openTerminal(second.link, "shell", { command: "cat" });
    expect((await read(second, "shell")).session?.exit).toBeUndefined();
  });
});

function until(holds: () => Promise<boolean>, withinMs = 10_000): Promise<void> {
  return eventually(holds, withinMs);
}
