import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService, OnDisconnect } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { SessionService } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { executionListArgsMaxBytes, stdinWriteMaxBytes } from "@holdfast/contract";
import type { GuestLink } from "@holdfast/guest-link";
import { describe, expect, it, onTestFinished } from "vitest";
import { agentProcess, eventually, soon } from "../testing/agent-process.testing.ts";
import { attach, cancel, refusalOf, script, start } from "../testing/followed-execution.testing.ts";
import { attachTo, openScript } from "../testing/followed-session.testing.ts";

const { getExecution, listExecutions, signalExecution, writeStdin } = ExecutionService.method;

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-control-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Started, when it resolves: a stream and a call have connections of their own, and what is called meanwhile may come before the start. */
async function streamed(link: GuestLink, id: string, text: string) {
  const run = await start(link, id, { command: "sh", args: ["-c", text], streamedStdin: true });
  await run.until(() => run.started !== undefined);
  return run;
}

function feed(
  link: GuestLink,
  executionId: string,
  offset: number,
  data: Uint8Array | string,
  end = false,
  within = soon(),
) {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  return link.call(writeStdin, { executionId, offset: BigInt(offset), data: bytes, end }, { within });
}

const refusal = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error) => error,
  );
const signal = (link: GuestLink, executionId: string, name: string) =>
  link.call(signalExecution, { executionId, signal: name }, { within: soon() });
const get = async (link: GuestLink, executionId: string) =>
  (await link.call(getExecution, { executionId }, { within: soon() })).execution;

/** A program that says when it is ready, and reads its input only when the file `go` is there. */
const readsLater = "echo ready; while [ ! -e go ]; do sleep 0.02; done; exec sha256sum";

describe("streamed input", () => {
  it("G12 reaches the program in order and once, until its end", async () => {
    const { link } = await agentProcess();
    const run = await streamed(link, "cat", "exec cat");
    expect(await feed(link, "cat", 0, "one ")).toMatchObject({ nextOffset: 4n, closed: false });
    expect(await feed(link, "cat", 0, "one ")).toMatchObject({ nextOffset: 4n }); // Its answer was lost, say.
    expect(await feed(link, "cat", 2, "e two")).toMatchObject({ nextOffset: 7n });
    expect(await refusal(feed(link, "cat", 8, "x"))).toMatchObject({
      reason: "OFFSET_OUT_OF_RANGE",
      metadata: { expected: "7" },
    });
    expect(await feed(link, "cat", 7, "\n", true)).toMatchObject({ nextOffset: 8n, closed: false });
    expect(await run.end()).toBe(0);
    expect(run.text).toBe("one two\n");
    expect(await feed(link, "cat", 7, "\n", true)).toMatchObject({ nextOffset: 8n });
  });

  it.runIf(process.getuid?.() === 0)("G12 is fed by an agent that runs as an ordinary user as well", async () => {
    const { link } = await agentProcess({}, 61_003);
    const run = await streamed(link, "sum", "exec wc -c");
    const half = Buffer.alloc(stdinWriteMaxBytes, "x");
    await feed(link, "sum", 0, half);
    await feed(link, "sum", half.length, half, true);
    expect(await run.end()).toBe(0);
    expect(run.text.trim()).toBe(String(2 * half.length));
  });

  it("G12 B09 a program need not wait for its end", async () => {
    const { link } = await agentProcess();
    const run = await streamed(link, "echo", "echo hi");
    expect(await run.end()).toBe(0);
    expect(await feed(link, "echo", 0, "late")).toMatchObject({ nextOffset: 0n, closed: true });
  });

  it("G12 B57 is told closed by a program that does not read, and nobody is harmed", async () => {
    const agent = await agentProcess();
    const { link } = agent;
    const run = await streamed(link, "one", "head -c 1 >/dev/null; exec <&-; echo closed; exec sleep 60");
    expect(await feed(link, "one", 0, "x")).toMatchObject({ nextOffset: 1n, closed: false });
    await run.until(() => run.text === "closed\n");
    expect(await feed(link, "one", 1, "y")).toMatchObject({ nextOffset: 1n, closed: true });
    expect(await feed(link, "one", 1, "y", true)).toMatchObject({ nextOffset: 1n, closed: true });
    const missing = await start(link, "missing", { command: "holdfast-no-such-program", streamedStdin: true });
    expect(await missing.end()).toBe(127);
    expect(await feed(link, "missing", 0, "y")).toMatchObject({ nextOffset: 0n, closed: true });
    expect((await link.call(AgentService.method.health, {}, { within: soon() })).serving).toBe(true);
    await cancel(link, "one");
  });

  it("G5 waits while the pipe is full; given up meanwhile, it is continued where it stood, byte for byte", async () => {
    const { link, root } = await agentProcess();
    const run = await streamed(link, "later", readsLater);
    await run.until(() => run.text === "ready\n");
    const input = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 31) & 0xff));
    let at = 0;
    let gaveUp = 0;
    while (at < input.length) {
      const data = input.subarray(at, at + stdinWriteMaxBytes);
      using within = new Deadline(systemClock, existsSync(join(root, "go")) ? 10_000 : 300);
      const answer = await feed(link, "later", at, data, false, within).catch(() => undefined);
      if (answer !== undefined) at = Number(answer.nextOffset);
      else if (++gaveUp === 2) writeFileSync(join(root, "go"), "");
      // The next try repeats all of `data`, of which the guest has taken a part.
    }
    expect(gaveUp).toBeGreaterThanOrEqual(2);
    expect(await feed(link, "later", at, "", true)).toMatchObject({ nextOffset: BigInt(input.length) });
    expect(await run.end()).toBe(0);
    expect(run.text).toBe(`ready\n${createHash("sha256").update(input).digest("hex")}  -\n`);
  });

  it("G5a of a lower epoch ends by name with a raise, which waits for no full pipe; the next holder continues it", async () => {
    const { link, root } = await agentProcess({ HOLDFAST_AGENT_STATE_DIR: directory() });
    const raise = (epoch: bigint) => link.call(AgentService.method.fence, { epoch }, { within: soon() });
    await raise(1n);
    const run = await streamed(link.under(1), "taken", readsLater);
    await run.until(() => run.text === "ready\n");
    const input = Buffer.alloc(3 * stdinWriteMaxBytes, "ab");
    const writes = [0, 1, 2].map((part) =>
      refusal(
        feed(
          link.under(1),
          "taken",
          part * stdinWriteMaxBytes,
          input.subarray(part * stdinWriteMaxBytes, (part + 1) * stdinWriteMaxBytes),
        ),
      ),
    );
    // The pipe takes 64 KiB: the first is done, the second waits, the third has its turn after it.
    expect(await writes[0]).toBeUndefined();
    await raise(2n);
    expect(await writes[1]).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(await writes[2]).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(await refusal(feed(link.under(1), "taken", 0, "", true))).toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
    });
    expect(run.exited).toBeUndefined();
    writeFileSync(join(root, "go"), "");
    // Whatever was taken is skipped: the same whole input, sent again from its beginning.
    for (let at = 0; at < input.length; at += stdinWriteMaxBytes)
      await feed(link.under(2), "taken", at, input.subarray(at, at + stdinWriteMaxBytes));
    await feed(link.under(2), "taken", input.length, "", true);
    expect(await run.end()).toBe(0);
    expect(run.text).toBe(`ready\n${createHash("sha256").update(input).digest("hex")}  -\n`);
  });

  it("G12 is refused where it does not belong, by name", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "whole", "exec sleep 60");
    await run.until(() => run.started !== undefined);
    expect(await refusal(feed(link, "whole", 0, "x"))).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await refusal(feed(link, "nobody", 0, "x"))).toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
    const long = Buffer.alloc(stdinWriteMaxBytes + 1);
    expect(await refusal(feed(link, "whole", 0, long))).toMatchObject({
      reason: "INVALID_REQUEST",
      metadata: { setting: "stdinWriteMaxBytes" },
    });
    const both = { command: "cat", stdin: Buffer.from("x"), streamedStdin: true };
    expect(await refusalOf(start(link, "both", both))).toMatchObject({ reason: "INVALID_REQUEST" });
    const ended = await streamed(link, "ended", "cat; exec sleep 60");
    await feed(link, "ended", 0, "abc", true);
    await ended.until(() => ended.text === "abc");
    expect(await refusal(feed(link, "ended", 3, "d"))).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await refusal(feed(link, "ended", 0, "ab", true))).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  it("G12 a program's end takes a write that waits with it", async () => {
    const { link } = await agentProcess();
    const run = await streamed(link, "full", "echo ready; exec sleep 60");
    await run.until(() => run.text === "ready\n");
    await feed(link, "full", 0, Buffer.alloc(stdinWriteMaxBytes));
    const waits = feed(link, "full", stdinWriteMaxBytes, Buffer.alloc(4_096));
    await cancel(link, "full");
    expect(await waits).toMatchObject({ nextOffset: BigInt(stdinWriteMaxBytes), closed: true });
    expect(await run.end()).toBe("SIGTERM");
  });
});

describe("a signal", () => {
  it("reaches the command's process group, by name with or without SIG", async () => {
    const { link } = await agentProcess();
    const text =
      'for s in HUP INT QUIT TERM USR1 USR2 WINCH CONT; do trap "echo $s" $s; done; echo ready; while :; do sleep 0.01; done';
    const run = await script(link, "hears", text);
    await run.until(() => run.text === "ready\n");
    for (const name of ["HUP", "SIGINT", "QUIT", "SIGTERM", "USR1", "USR2", "WINCH", "CONT"]) {
      expect(await signal(link, "hears", name)).toMatchObject({ alreadyEnded: false });
      const heard = `${name.replace("SIG", "")}\n`;
      await run.until(() => run.text.includes(heard)); // The shell may say how its `sleep` ended, which was signalled as well.
    }
    await signal(link, "hears", "KILL");
    expect(await run.end()).toBe("SIGKILL");
    expect(await signal(link, "hears", "KILL")).toMatchObject({ alreadyEnded: true });
    // Not that shell: it forks by vfork, and cannot stop while a child that was stopped before its exec holds it.
    const stops = await script(link, "stops", "exec sleep 60");
    await stops.until(() => stops.started !== undefined);
    expect(await signal(link, "stops", "STOP")).toMatchObject({ alreadyEnded: false });
    const pid = Number(stops.started?.pid);
    await eventually(() => /\) T /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
    await signal(link, "stops", "CONT");
    await eventually(() => /\) S /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
  });

  it("reaches what the leader left in its group, and tells when nothing is left", async () => {
    const { link } = await agentProcess();
    const drain = { seconds: 60n };
    const run = await script(link, "left", "sleep 60 & echo $!", { drain });
    await run.until(() => run.text.includes("\n"));
    const sleeper = Number(run.text);
    await eventually(() => !existsSync(`/proc/${run.started?.pid}`));
    expect(await signal(link, "left", "TERM")).toMatchObject({ alreadyEnded: false });
    expect(await run.end()).toBe(0);
    // The kernel closes its pipes, which is what the result waits for, some steps before it is gone.
    await eventually(() => isZombie(sleeper));
  });

  it("is refused when it is none that may be sent, and to what is not known", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "calm", "exec sleep 60");
    await run.until(() => run.started !== undefined);
    for (const name of ["", "9", "SEGV", "term", "SIGSIGTERM", "KILL "])
      expect(await refusal(signal(link, "calm", name))).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await refusal(signal(link, "nobody", "KILL"))).toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
    const request = { executionId: "calm", signal: "KILL", expectedBootId: "another" };
    expect(await refusal(link.call(signalExecution, request, { within: soon() }))).toMatchObject({
      reason: "GUEST_RESTARTED",
    });
    expect((await get(link, "calm"))?.exited).toBeUndefined();
  });
});

/** Or gone meanwhile. */
function isZombie(pid: number): boolean {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return true;
  }
}

describe("what is known of commands", () => {
  it("is told while they run and after, never their environment or input", async () => {
    const { link } = await agentProcess();
    const before = Date.now();
    const run = await start(
      link,
      "known",
      {
        command: "sh",
        args: ["-c", "echo out; read x; exit 3"],
        env: { SECRET: "hidden-1" },
        stdin: Buffer.from(""),
        streamedStdin: true,
      },
      { retainOutput: true },
    );
    await run.until(() => run.text === "out\n");
    const running = await get(link, "known");
    expect(running).toMatchObject({
      executionId: "known",
      command: "sh",
      args: ["-c", "echo out; read x; exit 3"],
      argsOmitted: 0,
      pid: run.started?.pid,
      retainOutput: true,
      outputBytes: 4n,
      keptFrom: 0n,
      unconfirmed: false,
      hasClient: true,
    });
    expect(running?.exited).toBeUndefined();
    const startedAt = Number(running?.startedAt?.seconds) * 1_000 + Number(running?.startedAt?.nanos) / 1e6;
    expect(startedAt).toBeGreaterThanOrEqual(before - 1);
    expect(startedAt).toBeLessThanOrEqual(Date.now());
    await feed(link, "known", 0, "hidden-2\n", true);
    expect(await run.end()).toBe(3);
    const ended = await get(link, "known");
    expect(ended).toMatchObject({ hasClient: false, exited: { outcome: { case: "code", value: 3 }, outputBytes: 4n } });
    expect(JSON.stringify(ended, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      "hidden",
    );
    expect(await refusal(get(link, "nobody"))).toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
  });

  it("is listed, with no more than so much of each one's arguments", async () => {
    const { link } = await agentProcess();
    const args = ["-c", "true", ...Array.from({ length: 100 }, () => "x".repeat(50))];
    for (const id of ["a", "b"]) await (await start(link, id, { command: "sh", args })).end();
    const list = await link.call(listExecutions, {}, { within: soon() });
    expect(list.bootId).toMatch(/^[0-9a-f-]{36}$/);
    expect(list.executions.map(({ executionId }) => executionId)).toEqual(["a", "b"]);
    for (const { args: named, argsOmitted } of list.executions) {
      expect(named).toEqual(args.slice(0, named.length));
      expect(named.join("").length).toBeLessThanOrEqual(executionListArgsMaxBytes);
      expect(named.length + argsOmitted).toBe(args.length);
      expect(argsOmitted).toBeGreaterThan(80);
    }
    expect((await get(link, "a"))?.args).toEqual(args);
  });
});

describe("a client that leaves its command running", () => {
  it("G6 unbinds it: nobody waits for another client", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "left", "echo ready; exec sleep 60", { onDisconnect: OnDisconnect.CANCEL });
    await run.until(() => run.text === "ready\n");
    run.stream?.end({ clientClosed: false });
    await eventually(() => run.stream?.isClosed ?? true);
    expect(await get(link, "left")).toMatchObject({ hasClient: false, unconfirmed: false });
    const observer = await attach(link, "left");
    await observer.until(() => observer.text === "ready\n");
    expect(observer.exited).toBeUndefined();
  });
});

const uid = 1_001;

/** An agent without privileges, and how a program in it becomes another user's: the arguments before the program's own. */
async function unprivileged() {
  const agent = await agentProcess({}, uid);
  const tool = join(agent.root, "as-root");
  copyFileSync("/usr/bin/setpriv", tool);
  chmodSync(tool, 0o4755);
  return { ...agent, asRoot: `${tool} --reuid 0 --regid 0 --clear-groups` };
}

describe.runIf(process.getuid?.() === 0 && existsSync("/usr/bin/setpriv"))(
  "a signal that the guest's user may not send",
  () => {
    it("is refused by name with what it did not reach, and nothing was signalled", async () => {
      const { link, asRoot } = await unprivileged();
      const run = await script(link, "roots", `exec ${asRoot} sh -c 'echo ready; exec sleep 60'`);
      await run.until(() => run.text === "ready\n");
      const refused = await refusal(signal(link, "roots", "KILL"));
      expect(refused).toMatchObject({
        reason: "INVALID_REQUEST",
        metadata: { field: "signal", cause: "EPERM", not_reached: expect.stringMatching(`^${run.started?.pid} `) },
      });
      expect(readFileSync(`/proc/${run.started?.pid}/stat`, "utf8")).toMatch(/\) S /);
    });

    it("reaches those of the group that it may be sent to, and is a success then", async () => {
      const { link, asRoot } = await unprivileged();
      const run = await script(
        link,
        "both",
        `trap 'echo heard' USR1; ${asRoot} sh -c 'trap "" USR1; echo ready; exec sleep 60' & while :; do sleep 0.01; done`,
      );
      await run.until(() => run.text.includes("ready\n"));
      expect(await signal(link, "both", "USR1")).toMatchObject({ alreadyEnded: false });
      await run.until(() => run.text.includes("heard\n"));
    });

    it("is refused likewise where only what the command left behind is another user's", async () => {
      const { link, asRoot } = await unprivileged();
      const run = await script(link, "left", `${asRoot} sh -c 'echo ready; exec sleep 60' & exit 0`, {
        drain: { seconds: 60n },
      });
      await run.until(() => run.text === "ready\n");
      await eventually(() => !existsSync(`/proc/${run.started?.pid}`));
      expect(await refusal(signal(link, "left", "TERM"))).toMatchObject({
        reason: "INVALID_REQUEST",
        metadata: { cause: "EPERM", not_reached: expect.stringMatching(/^\d+ \(\w+\)$/) },
      });
    });

    it("is refused likewise by a terminal's foreground group", async () => {
      const { link, asRoot } = await unprivileged();
      await openScript(link, "roots", `exec ${asRoot} sh -c 'echo ready; exec sleep 60'`);
      const terminal = await attachTo(link, "roots");
      await terminal.until(() => terminal.text.includes("ready"));
      const sent = link.call(
        SessionService.method.signalSession,
        { sessionId: "roots", signal: "INT" },
        { within: soon() },
      );
      expect(await refusal(sent)).toMatchObject({
        reason: "INVALID_REQUEST",
        metadata: { field: "signal", cause: "EPERM", not_reached: expect.stringMatching(/^\d+ \(\w+\)$/) },
      });
    });
  },
);
