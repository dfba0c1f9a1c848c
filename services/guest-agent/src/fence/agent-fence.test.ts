import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService, OnDisconnect } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { SessionService } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { AnsweredError, type CallerStream, type GuestLink } from "@holdfast/guest-link";
import { describe, expect, it, onTestFinished } from "vitest";
import { type AgentProcess, agentProcess, eventually, soon } from "../testing/agent-process.testing.ts";
import { attach, cancel, refusalOf, script, start } from "../testing/followed-execution.testing.ts";
import { attachTo, openScript, write as typeInto } from "../testing/followed-session.testing.ts";

const { fence, health } = AgentService.method;
const { makeDirectory, move, remove, stat, write } = FileService.method;

function stateDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-agent-state-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const raise = (link: GuestLink, epoch: number) => link.call(fence, { epoch: BigInt(epoch) }, { within: soon() });

const epochOf = async (link: GuestLink) => Number((await link.call(health, {}, { within: soon() })).holderEpoch);

/** The reason of the answer. */
async function reasonOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (answer) => answer,
  );
  if (error instanceof AnsweredError) return error.reason;
  throw error ?? new Error("it was not refused");
}

interface OpenStream {
  readonly stream: CallerStream;
  readonly over: Promise<Error | undefined>;
}

async function opened(link: GuestLink, method: "remove" | "write", path: string): Promise<OpenStream> {
  const { promise: over, resolve } = Promise.withResolvers<Error | undefined>();
  const listener = { message: () => undefined, data: () => undefined, over: resolve };
  const within = soon();
  const stream =
    method === "remove"
      ? await link.open(remove, { path, recursive: true }, listener, { within })
      : await link.open(write, { path }, listener, { within });
  return { stream, over };
}

const reasonOfStream = async ({ over }: OpenStream): Promise<string> =>
  reasonOf(over.then((error) => (error ? Promise.reject(error) : undefined)));

async function fenced(epoch: number): Promise<AgentProcess> {
  const agent = await agentProcess({ HOLDFAST_AGENT_STATE_DIR: stateDirectory() });
  await raise(agent.link, epoch);
  return agent;
}

describe("the holder epoch of a real agent", () => {
  it("G5a outlives a SIGKILL of the agent, read before its port opens", async () => {
    const state = stateDirectory();
    const first = await agentProcess({ HOLDFAST_AGENT_STATE_DIR: state });
    expect(await epochOf(first.link)).toBe(0);
    expect(await raise(first.link, 7)).toMatchObject({ epoch: 7n });
    first.child.kill("SIGKILL");
    await first.exited;
    const second = await agentProcess({ HOLDFAST_AGENT_STATE_DIR: state });
    expect(await epochOf(second.link)).toBe(7);
    expect(await reasonOf(raise(second.link, 6))).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect((await refusalOf(script(second.link.under(6), "old", "true"))).metadata).toMatchObject({ stored: "7" });
    expect((await refusalOf(script(second.link, "none", "true"))).reason).toBe("HOLDER_EPOCH_REQUIRED");
    expect(await (await script(second.link.under(7), "new", "true")).end()).toBe(0);
  });

  it("G5a a number that cannot be read keeps the agent from starting, by name", async () => {
    const state = stateDirectory();
    writeFileSync(join(state, "holder-epoch"), "7");
    const start = agentProcess({ HOLDFAST_AGENT_STATE_DIR: state });
    await expect(start).rejects.toThrow(/ended with 1:.*HOLDER_EPOCH_UNREADABLE/s);
    await expect(agentProcess({ HOLDFAST_AGENT_STATE_DIR: `${state}/absent` })).rejects.toThrow(
      /HOLDFAST_AGENT_STATE_DIR/,
    );
  });

  it("G5a a number that cannot be kept is not taken, and the holder goes on", async () => {
    const { link, pid } = await fenced(1);
    execFileSync("prlimit", [`--pid=${pid}`, "--fsize=0:"]);
    expect(await reasonOf(raise(link, 2))).toBe("DISK_FULL");
    execFileSync("prlimit", [`--pid=${pid}`, "--fsize=unlimited:"]);
    expect(await epochOf(link)).toBe(1);
    expect(await (await script(link.under(1), "goes-on", "true")).end()).toBe(0);
    await raise(link, 2);
    expect(await epochOf(link)).toBe(2);
  });

  it("B86 a superseded holder changes nothing by any call, and may still read", async () => {
    const { link, root } = await fenced(1);
    const before = await script(link.under(1), "runs", "echo begun; exec sleep 60", {
      onDisconnect: OnDisconnect.DETACH,
    });
    await before.until(() => before.text === "begun\n");
    const reading = { command: "sh", args: ["-c", "echo begun; cat > typed"], streamedStdin: true };
    const reads = await start(link.under(1), "reads", reading);
    await reads.until(() => reads.text === "begun\n");
    await openScript(link.under(1), "t", "cat > typed");
    const terminal = await attachTo(link.under(1), "t");
    writeFileSync(join(root, "kept"), "kept");
    await raise(link, 2);
    expect(await terminal.over).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    const old = link.under(1);
    const within = soon();
    for (const call of [
      () => old.call(makeDirectory, { path: "made" }, { within }),
      () => old.call(move, { from: "kept", to: "moved" }, { within }),
      () => cancel(old, "runs"),
      () => old.call(ExecutionService.method.signalExecution, { executionId: "runs", signal: "KILL" }, { within }),
      () => old.call(ExecutionService.method.writeStdin, { executionId: "reads", data: Buffer.from("x") }, { within }),
      () => typeInto(old, "t", terminal.id, 1n, "x"),
      () => old.call(SessionService.method.killSession, { sessionId: "t" }, { within }),
    ]) {
      // Each tells the current number.
      await expect(call()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED", metadata: { stored: "2" } });
    }
    expect(await reasonOfStream(await opened(old, "remove", "kept"))).toBe("HOLDER_EPOCH_SUPERSEDED");
    const upload = await opened(old, "write", "kept");
    upload.stream.sendData(Buffer.alloc(100_000)); // Read and dropped: the answer arrives all the same.
    expect(await reasonOfStream(upload)).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect((await refusalOf(script(old, "new", "touch ran"))).reason).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect((await refusalOf(attach(old, "runs", { asClient: true }))).reason).toBe("HOLDER_EPOCH_SUPERSEDED");
    // Reading goes on, by old streams and by new ones.
    const { file } = await old.call(stat, { path: "kept" }, { within });
    expect(file?.size).toBe(4n);
    const observer = await attach(old, "runs");
    await observer.until(() => observer.text === "begun\n");
    expect(readdirSync(root).sort()).toEqual(["kept", "typed"]);
    expect(readFileSync(join(root, "typed"), "utf8")).toBe("");
    await cancel(link.under(2), "reads");
    await cancel(link.under(2), "runs");
    expect(await before.end()).toBe("SIGTERM"); // The stream of the superseded holder lived until the command's end.
    expect(await observer.end()).toBe("SIGTERM");
  });

  it("G5a an upload of a lower epoch ends by name, and what stood there stands", async () => {
    const { link, root } = await fenced(1);
    writeFileSync(join(root, "file"), "old");
    const upload = await opened(link.under(1), "write", "file");
    upload.stream.sendData(Buffer.alloc(70_000));
    await eventually(() => readdirSync(root).includes(".holdfast-tmp"));
    await raise(link, 2);
    expect(await reasonOfStream(upload)).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect(readFileSync(join(root, "file"), "utf8")).toBe("old");
    await eventually(() => !readdirSync(root).includes(".holdfast-tmp"));
  });

  it("G5a starts, moves and directories that race a raise: none takes effect after its answer", async () => {
    const { link, root } = await fenced(1);
    const old = link.under(1);
    const runs = async () => (await link.call(health, {}, { within: soon() })).runningExecutions;
    const names = () =>
      readdirSync(root)
        .filter((name) => name !== ".holdfast-tmp")
        .sort();
    let epoch = 1;
    for (let round = 0; round < 8; round += 1) {
      const mine = link.under(epoch);
      const settled: Promise<unknown>[] = [];
      for (let at = 0; at < 12; at += 1) {
        const name = `${round}-${at}`;
        mkdirSync(join(root, `from-${name}`));
        const started = script(mine, name, "exec sleep 60").then((run) =>
          Promise.race([run.over, run.until(() => run.started !== undefined)]),
        );
        const moved = mine.call(move, { from: `from-${name}`, to: `to-${name}` }, { within: soon() });
        const made = mine.call(makeDirectory, { path: `made-${name}/a/b`, makeParents: true }, { within: soon() });
        settled.push(...[started, moved, made].map((work) => work.catch((answer) => answer)));
        // The raise goes out at another place in the row each time.
        if (at === round) {
          epoch += 1;
          const answered = raise(link, epoch).then(async () => ({ names: names(), runs: await runs() }));
          settled.push(answered);
        }
      }
      const results = await Promise.all(settled);
      const seen = results.find((result) => typeof result === "object" && result !== null && "runs" in result);
      // The parents that made- had by then included: what was there at the answer is what is there at the end.
      expect({ names: names(), runs: await runs() }).toEqual(seen);
    }
    expect(await reasonOf(cancel(old, "0-0"))).toBe("HOLDER_EPOCH_SUPERSEDED");
  }, 30_000);

  it("G5a a removal that a raise overtakes goes no further, and says so", async () => {
    const { link, root } = await fenced(1);
    for (let at = 0; at < 600; at += 1) mkdirSync(join(root, "tree", String(at)), { recursive: true });
    const left = () => readdirSync(join(root, "tree")).length;
    const removal = await opened(link.under(1), "remove", "tree");
    await eventually(() => readdirSync(join(root, "tree")).length < 600);
    await raise(link, 2);
    const atAnswer = left();
    expect(await reasonOfStream(removal)).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect(atAnswer).toBeGreaterThan(0);
    expect(left()).toBe(atAnswer);
  });

  it("G5a a cancel that a raise overtakes sends no further signal, and says so", async () => {
    const { link } = await fenced(1);
    const run = await script(link.under(1), "deaf", "trap 'echo heard' TERM; echo ready; while :; do sleep 0.05; done");
    await run.until(() => run.text === "ready\n");
    const cancelled = reasonOf(cancel(link.under(1), "deaf", 1_000));
    await run.until(() => run.text.includes("heard"));
    await raise(link, 2);
    expect(await cancelled).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect(run.exited).toBeUndefined();
    expect((await link.call(health, {}, { within: soon() })).runningExecutions).toBe(1);
    expect(await cancel(link.under(2), "deaf")).toMatchObject({ alreadyEnded: false });
    expect(await run.end()).toBe("SIGKILL");
  });

  it("G5a one who still may keeps a cancel going that another may not any more", async () => {
    const { link } = await fenced(1);
    const run = await script(link.under(1), "deaf", "trap 'echo heard' TERM; echo ready; while :; do sleep 0.05; done");
    await run.until(() => run.text === "ready\n");
    const old = cancel(link.under(1), "deaf", 1_000);
    await run.until(() => run.text.includes("heard"));
    await raise(link, 2);
    expect(await cancel(link.under(2), "deaf")).toMatchObject({ alreadyEnded: false });
    await old; // Carried out, if not for its sake.
    expect(await run.end()).toBe("SIGKILL");
  });

  it("G5a the close of a superseded client ends no program", async () => {
    const { link } = await fenced(1);
    const run = await script(link.under(1), "bound", "echo ready; exec sleep 60", {
      onDisconnect: OnDisconnect.CANCEL,
    });
    await run.until(() => run.text === "ready\n");
    await raise(link, 2);
    run.stream?.end({ clientClosed: true });
    // Another client takes its place, which is when a command that had been ended would say so.
    const next = await attach(link.under(2), "bound", { asClient: true });
    await next.until(() => next.text === "ready\n");
    expect((await link.call(health, {}, { within: soon() })).runningExecutions).toBe(1);
    next.stream?.end({ clientClosed: true });
    const observer = await attach(link, "bound");
    expect(await observer.end()).toBe("SIGTERM");
  });
});
