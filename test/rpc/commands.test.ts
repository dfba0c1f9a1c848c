import { createHash, randomBytes, randomInt } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ExecutionState, OnDisconnect } from "@holdfast/api/holdfast/v1/execution_pb";
import { holderEpochFrom, stdinWaitingMaxBytes } from "@holdfast/contract";
import { openWish, patient } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { guestProcess } from "../guest/guest-process.ts";
import { Heard, interactive } from "./interactive-client.ts";
import { terminalStage } from "./terminal-stage.ts";
import { clientsBy, failureOf, type Way, ways } from "./ways.ts";

const way = (name: string): Way => ways.find((one) => one.name === name) as Way;
const grpcJs = way("grpc-js on --listen");
const connect = way("Connect, HTTP/2");
const browser = way("Connect, HTTP/1.1");

type Stage = Awaited<ReturnType<typeof terminalStage>>;

/** Clients of the stage's listeners, past the proxy. */
const clientsOf = (stage: Stage, by: Way) => clientsBy(by, stage.listeners);

const script = (line: string, more: object = {}) => ({
  workspaceId: "w",
  command: "sh",
  args: ["-c", line],
  ...more,
});

const there = (stage: Stage, name: string): boolean => existsSync(join(stage.agent.root, name));

describe.each([grpcJs, connect])("an interactive command by $name", (by) => {
  it("B09 takes input, signals and the input's end, and ends with the program, though its client never half-closes", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, by);
    const line = "trap 'echo usr1' USR1; echo ready; cat; echo over; while [ ! -e go ]; do sleep 0.02; done; exit 7";
    const run = interactive(clients.executions, script(line, { stdin: Buffer.from("first ") }));
    await run.heard.until(() => run.heard.text.includes("ready\n"));
    run.type("a");
    run.type("b\n");
    await run.heard.until(() => run.heard.text.endsWith("first ab\n"));
    run.endInput();
    await run.heard.until(() => run.heard.text.endsWith("over\n"));
    run.signal("USR1");
    await run.heard.until(() => run.heard.text.endsWith("usr1\n"));
    await clients.executions.runCommand(script("touch go"));
    expect(await run.over).toBeUndefined();
    expect(run.heard.exited).toMatchObject({ status: { case: "exitCode", value: 7 }, outputBytes: run.heard.next });
    expect(run.heard.started).toMatchObject({ attached: false });
    await expect.poll(() => stage.listeners.admission.inProgress).toBe(0);
  });

  it("keeps its input open after a half-close: only stdin_end ends it", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, by);
    const run = interactive(
      clients.executions,
      script("exec 3<&0; (exec cat <&3 >/dev/null; touch ended) & sleep 0.3; kill -0 $! && echo open; kill $!"),
    );
    run.halfClose();
    expect(await run.over).toBeUndefined();
    expect(run.heard.text).toBe("open\n");
  });

  it("ends at a detach, and the command goes on, though it is bound to its client", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, by);
    const start = script("cat > in; echo got; sleep 0.2; cat in", {
      executionId: "left",
      onDisconnect: OnDisconnect.CANCEL,
    });
    const run = interactive(clients.executions, start);
    run.type("typed");
    run.endInput();
    run.detach();
    expect(await run.over).toBeUndefined();
    expect(run.heard.exited).toBeUndefined();
    const rest = new Heard();
    expect(
      await rest.all(clients.executions.attachExecution({ workspaceId: "w", executionId: "left" })),
    ).toBeUndefined();
    expect(rest.text).toBe("got\ntyped");
    expect(rest.exited?.status).toEqual({ case: "exitCode", value: 0 });
  });

  it.each([
    ["CANCEL", OnDisconnect.CANCEL],
    ["DETACH", OnDisconnect.DETACH],
  ] as const)("L44 %s is for the client's end: a cancel, and a request that is wrong", async (what, onDisconnect) => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, by);
    for (const how of ["cancelled", "wrong"]) {
      const cancel = new AbortController();
      const line = "echo ready; while [ ! -e go ]; do sleep 0.02; done";
      const start = script(line, { executionId: how, onDisconnect });
      const run = interactive(clients.executions, start, { signal: cancel.signal });
      await run.heard.until(() => run.heard.text === "ready\n");
      if (how === "cancelled") cancel.abort();
      else run.send({ case: "start", value: start });
      expect(await run.over).toMatchObject(how === "cancelled" ? { code: "Canceled" } : { reason: "INVALID_REQUEST" });
    }
    const states = async () => {
      const { executions } = await clients.executions.listExecutions({ workspaceId: "w" });
      return executions.map(({ executionId, state }) => [executionId, state]);
    };
    const state = what === "CANCEL" ? ExecutionState.EXITED : ExecutionState.RUNNING;
    await expect.poll(states).toEqual([
      ["cancelled", state],
      ["wrong", state],
    ]);
    await clients.executions.runCommand(script("touch go"));
  });

  it("holds a client back whose program reads nothing; a signal still gets there; B57 one that has closed its input is no failure", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, by);
    const run = interactive(
      clients.executions,
      script("trap 'exec 0<&-; echo closed; exit 3' INT; echo ready; while :; do sleep 0.02; done"),
    );
    await run.heard.until(() => run.heard.text === "ready\n");
    const piece = Buffer.alloc(16 * 1024, 1);
    for (let at = 0; at < 10; at += 1) run.type(piece);
    run.signal("INT");
    expect(await run.over).toBeUndefined();
    expect(run.heard.text).toBe("ready\nclosed\n");
    expect(run.heard.exited?.status).toEqual({ case: "exitCode", value: 3 });
    const head = interactive(clients.executions, script("head -c 1 | wc -c"));
    for (let at = 0; at < 160; at += 1) head.type(Buffer.alloc(64 * 1024));
    head.endInput();
    expect(await head.over).toBeUndefined();
    expect(head.heard.text.trim()).toBe("1");
  });

  it("says what input was not taken when its client leaves before the program has read it", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, by);
    const run = interactive(clients.executions, script("sleep 60", { executionId: "deaf" }));
    for (let at = 0; at < 3; at += 1) run.type(Buffer.alloc(64 * 1024));
    run.detach();
    const failure = await run.over;
    expect(failure).toMatchObject({ reason: "EXECUTION_DETACHED", metadata: { execution_id: "deaf" } });
    const { input_taken: taken, input_waiting: waiting } = failure?.metadata ?? {};
    expect(Number(taken) + Number(waiting)).toBe(3 * 64 * 1024);
    const { execution } = await clients.executions.getExecution({ workspaceId: "w", executionId: "deaf" });
    expect(execution?.state).toBe(ExecutionState.RUNNING);
    await clients.executions.cancelExecution({ workspaceId: "w", executionId: "deaf" });
  }, 20_000);
});

describe("G12 B27 input and output through 50 cuts of the link to the guest", () => {
  it("are each taken once: the program hashes what it read, and counts what it wrote", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const typed = Array.from({ length: 100 }, (_, at) =>
      randomBytes(at % 7 === 0 ? randomInt(8_000, 60_000) : randomInt(1, 300)),
    );
    const line = `(i=0; while :; do i=$((i+1)); echo $i; sleep 0.002; done) & c=$!
      cat > in; kill $c; wait $c 2>/dev/null; sha256sum < in`;
    const run = interactive(clients.executions, script(line));
    await run.heard.until(() => run.heard.text.length > 0);
    let cuts = 0;
    for (const [at, data] of typed.entries()) {
      if (at % 2 === 1) {
        run.type(data);
        continue;
      }
      await expect.poll(() => stage.hop2.connections, { interval: 2, timeout: 15_000 }).toBeGreaterThan(0);
      const kind = cuts % 5;
      if (kind === 0) {
        run.type(data);
        stage.hop2.cut();
      } else if (kind < 3) {
        // Within a frame, its header included.
        const cut = stage.hop2.cutAfter(kind === 1 ? "there" : "back", randomInt(1, 20));
        run.type(data);
        await cut;
      } else if (kind === 3) {
        // Between the effect and its acknowledgement.
        const cut = stage.hop2.cutAfterSwallowing("back", 10);
        run.type(data);
        await cut;
      } else {
        const cut = stage.hop2.cutAfterSilence(30);
        run.type(data);
        await cut;
      }
      cuts += 1;
    }
    run.endInput();
    expect(await run.over).toBeUndefined();
    expect(cuts).toBe(50);
    expect(run.heard.missing).toBe(0);
    const lines = run.heard.text.trimEnd().split("\n");
    const hash = createHash("sha256").update(Buffer.concat(typed)).digest("hex");
    expect(lines.pop()).toBe(`${hash}  -`);
    expect(lines.length).toBeGreaterThan(50);
    expect(lines.map(Number)).toEqual(Array.from({ length: lines.length }, (_, at) => at + 1));
  }, 120_000);

  it("are taken once, too, where the same start joins: input is sent again from its beginning", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, connect);
    const start = script("cat > in; sha256sum < in", { executionId: "again" });
    const text = randomBytes(300_000);
    const cancel = new AbortController();
    const first = interactive(clients.executions, start, { signal: cancel.signal });
    for (let at = 0; at < 200_000; at += 50_000) first.type(text.subarray(at, at + 50_000));
    await first.heard.until(() => first.heard.started !== undefined);
    await expect.poll(() => there(stage, "in") && readFileSync(join(stage.agent.root, "in")).length).toBeGreaterThan(0);
    cancel.abort();
    await first.over;
    const second = interactive(clients.executions, start);
    for (let at = 0; at < text.length; at += 50_000) second.type(text.subarray(at, at + 50_000));
    second.endInput();
    expect(await second.over).toBeUndefined();
    expect(second.heard.started?.attached).toBe(true);
    expect(second.heard.text).toBe(`${createHash("sha256").update(text).digest("hex")}  -\n`);
  });
});

describe("a command that is followed", () => {
  it("B36 has the same offsets on Execute, Attach and Get; delivered + gaps = produced on each; from a browser, too", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    using http1 = clientsOf(stage, browser);
    const whole = new Heard();
    const start = script("seq 1 60000; echo err >&2; exit 4", { executionId: "long", retainOutput: true });
    expect(await whole.all(clients.executions.execute(start))).toBeUndefined();
    const produced = whole.exited?.outputBytes;
    expect(produced).toBe(whole.next);
    const { execution, bootId } = await clients.executions.getExecution({ workspaceId: "w", executionId: "long" });
    expect(execution).toMatchObject({
      executionId: "long",
      state: ExecutionState.EXITED,
      command: "sh",
      outputBytes: produced,
      keptFrom: 0n,
      retainOutput: true,
      exited: { status: { case: "exitCode", value: 4 } },
    });
    expect(bootId).toBe(whole.started?.bootId);
    for (const by of [clients, http1]) {
      for (const fromOffset of [0n, 12_345n, produced ?? 0n]) {
        const rest = new Heard(fromOffset);
        const request = { workspaceId: "w", executionId: "long", fromOffset, expectedBootId: bootId };
        expect(await rest.all(by.executions.attachExecution(request))).toBeUndefined();
        expect(rest.started).toMatchObject({ attached: true, bootId });
        expect(rest.text).toBe(whole.text.slice(Number(fromOffset)));
        expect(rest.exited).toEqual(whole.exited);
      }
    }
    const some = new Heard(100n);
    const few = { workspaceId: "w", executionId: "long", fromOffset: 100n, maxOutput: 1_000n };
    expect(await some.all(clients.executions.attachExecution(few))).toBeUndefined();
    expect([some.text.length, some.missing, some.next]).toEqual([1_000, Number(produced) - 1_100, produced]);
    const { executions } = await clients.executions.listExecutions({ workspaceId: "w" });
    expect(executions).toEqual([execution]);
  });

  it("holds its program back for its starter alone: one that only follows gets gaps, and they add up", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    using slow = clientsOf(stage, connect);
    const go = Promise.withResolvers<void>();
    const follower = new Heard();
    const start = script("while [ ! -e go ]; do sleep 0.01; done; head -c 60000000 /dev/zero", { executionId: "much" });
    const starter = new Heard();
    const all = starter.all(clients.executions.execute(start));
    await starter.until(() => starter.started !== undefined);
    const following = follower.all(slow.executions.attachExecution({ workspaceId: "w", executionId: "much" }), () =>
      follower.messages === 2 ? go.promise : undefined,
    );
    await follower.until(() => follower.started !== undefined);
    await clients.executions.runCommand(script("touch go"));
    expect(await all).toBeUndefined();
    expect([starter.next, starter.missing]).toEqual([60_000_000n, 0]);
    go.resolve();
    expect(await following).toBeUndefined();
    expect(follower.missing).toBeGreaterThan(0);
    expect(follower.text.length + follower.missing).toBe(60_000_000);
    const held = new Heard();
    const never = Promise.withResolvers<void>();
    const cancel = new AbortController();
    const reading = held.all(
      slow.executions.execute(script("head -c 60000000 /dev/zero", { executionId: "held" }), { signal: cancel.signal }),
      () => (held.messages === 2 ? never.promise : undefined),
    );
    await held.until(() => held.messages === 2);
    const written = async () =>
      (await clients.executions.getExecution({ workspaceId: "w", executionId: "held" })).execution?.outputBytes;
    let last: bigint | undefined;
    let same = 0;
    await expect
      .poll(
        async () => {
          const now = await written();
          same = now === last ? same + 1 : 0;
          last = now;
          return same;
        },
        { timeout: 15_000 },
      )
      .toBeGreaterThan(10);
    expect(last).toBeLessThan(20_000_000n);
    cancel.abort();
    never.resolve();
    await reading;
  }, 60_000);

  it("ends nothing and signals nothing by an attach; SignalExecution and CancelExecution do", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const start = script("trap 'echo hup' HUP; trap '' TERM; echo ready; while :; do sleep 0.02; done", {
      executionId: "x",
    });
    const starter = new Heard();
    const all = starter.all(clients.executions.execute(start));
    await starter.until(() => starter.text === "ready\n");
    const ids = { workspaceId: "w", executionId: "x" };
    const cancel = new AbortController();
    const follower = new Heard();
    const following = follower.all(clients.executions.attachExecution(ids, { signal: cancel.signal }));
    await follower.until(() => follower.text === "ready\n");
    cancel.abort();
    expect(await following).toMatchObject({ code: "Canceled" });
    expect(await clients.executions.signalExecution({ ...ids, signal: "SIGHUP" })).toMatchObject({
      alreadyEnded: false,
    });
    await starter.until(() => starter.text.endsWith("hup\n"));
    const grace = { seconds: 0n, nanos: 50_000_000 };
    const answers = await Promise.all([1, 2].map(() => clients.executions.cancelExecution({ ...ids, grace })));
    expect(answers.map(({ alreadyEnded }) => alreadyEnded)).toEqual([false, false]);
    expect(await all).toBeUndefined();
    expect(starter.exited?.status).toEqual({ case: "signal", value: "SIGKILL" });
    expect(await clients.executions.cancelExecution(ids)).toMatchObject({ alreadyEnded: true });
    expect(await clients.executions.signalExecution({ ...ids, signal: "KILL" })).toMatchObject({ alreadyEnded: true });
  });
});

describe("refusals of commands", () => {
  it("B33 the same start joins, another is EXECUTION_EXISTS; an id that nobody knows and an offset past the end are named", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const start = script("echo x >> ran; echo out", { executionId: "one" });
    for (const attached of [false, true]) {
      const heard = new Heard();
      expect(await heard.all(clients.executions.execute(start))).toBeUndefined();
      expect([heard.started?.attached, heard.text]).toEqual([attached, "out\n"]);
    }
    expect(readFileSync(join(stage.agent.root, "ran"), "utf8")).toBe("x\n");
    const other = new Heard();
    expect(await other.all(clients.executions.execute({ ...start, args: ["-c", "echo y >> ran"] }))).toMatchObject({
      reason: "EXECUTION_EXISTS",
      code: "AlreadyExists",
    });
    const attach = (more: object) =>
      new Heard().all(clients.executions.attachExecution({ workspaceId: "w", executionId: "one", ...more }));
    expect(await attach({ fromOffset: 5n })).toMatchObject({ reason: "OFFSET_OUT_OF_RANGE", code: "OutOfRange" });
    expect(await attach({ fromOffset: 2n ** 64n - 1n })).toMatchObject({ reason: "OFFSET_OUT_OF_RANGE" });
    const nobody = { workspaceId: "w", executionId: "nobody" };
    const refused = [
      await attach(nobody),
      await failureOf(clients.executions.getExecution(nobody)),
      await failureOf(clients.executions.signalExecution({ ...nobody, signal: "INT" })),
      await failureOf(clients.executions.cancelExecution(nobody)),
    ];
    for (const failure of refused) {
      expect(failure).toMatchObject({
        reason: "EXECUTION_NOT_FOUND",
        code: "NotFound",
        metadata: { workspace_id: "w" },
      });
    }
  });

  it("GUEST_RESTARTED: nothing is started, followed, signalled or ended in another agent process than the expected one", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const expectedBootId = "another";
    const { executions } = clients;
    const heard = new Heard();
    expect(
      await heard.all(
        executions.execute(script("sleep 60", { executionId: "r" }), { signal: AbortSignal.timeout(1_000) }),
      ),
    ).toBeDefined();
    const ids = { workspaceId: "w", executionId: "r", expectedBootId };
    const refused = [
      await new Heard().all(executions.execute(script("touch ran", { expectedBootId }))),
      await failureOf(executions.runCommand(script("touch ran", { expectedBootId }))),
      await interactive(executions, script("touch ran", { expectedBootId })).over,
      await new Heard().all(executions.attachExecution(ids)),
      await failureOf(executions.signalExecution({ ...ids, signal: "KILL" })),
      await failureOf(executions.cancelExecution(ids)),
    ];
    expect(refused.map((failure) => failure?.reason)).toEqual(Array.from({ length: 6 }, () => "GUEST_RESTARTED"));
    expect(there(stage, "ran")).toBe(false);
    const { execution, bootId } = await executions.getExecution({ workspaceId: "w", executionId: "r" });
    expect(execution?.state).toBe(ExecutionState.RUNNING);
    expect(await executions.runCommand(script("true", { expectedBootId: bootId }))).toMatchObject({
      exited: { status: { case: "exitCode", value: 0 } },
    });
    await executions.cancelExecution({ ...ids, expectedBootId: bootId });
  });

  it("B07 an agent that is killed: no end is invented; the start is UNKNOWN, the attach UNAVAILABLE, and then the id is EXECUTION_LOST", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const starter = new Heard();
    const starting = starter.all(clients.executions.execute(script("echo on; sleep 60", { executionId: "l" })));
    await starter.until(() => starter.text === "on\n");
    const follower = new Heard();
    const ids = { workspaceId: "w", executionId: "l" };
    const following = follower.all(clients.executions.attachExecution(ids));
    await follower.until(() => follower.text === "on\n");
    stage.agent.child.kill("SIGKILL");
    await stage.agent.exited;
    await guestProcess(stage.agent);
    const metadata = { execution_id: "l", next_offset: "3" };
    expect(await starting).toMatchObject({ reason: "EXECUTION_DETACHED", code: "Unknown", metadata });
    expect(await following).toMatchObject({ reason: "EXECUTION_DETACHED", code: "Unavailable", metadata });
    expect([starter.exited, follower.exited]).toEqual([undefined, undefined]);
    expect(await new Heard().all(clients.executions.attachExecution(ids))).toMatchObject({ reason: "EXECUTION_LOST" });
    expect(await failureOf(clients.executions.getExecution(ids))).toMatchObject({
      reason: "EXECUTION_LOST",
      code: "NotFound",
    });
    expect(await failureOf(clients.executions.cancelExecution(ids))).toMatchObject({ reason: "EXECUTION_LOST" });
  }, 60_000);

  it("B56 durations: none of 0, negative ones INVALID_REQUEST, and beyond 2^31 ms nothing ends early", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const { executions } = clients;
    const run = (timeout: object) => executions.runCommand(script("sleep 0.3; echo whole", { timeout }));
    for (const timeout of [{ seconds: 30n * 86_400n }, { seconds: 0n }, { seconds: 315_576_000_000n }]) {
      const { stdout, exited } = await run(timeout);
      expect([Buffer.from(stdout).toString(), exited?.timedOut]).toEqual(["whole\n", false]);
    }
    expect((await run({ nanos: 1 })).exited?.timedOut).toBe(true);
    for (const timeout of [{ seconds: -1n }, { nanos: -1 }, { seconds: 2n ** 63n - 1n }]) {
      expect(await failureOf(run(timeout))).toMatchObject({ reason: "INVALID_REQUEST", violations: ["timeout"] });
    }
    const drain = { seconds: 61n };
    expect(await new Heard().all(executions.execute(script("true", { drain })))).toMatchObject({
      violations: ["drain"],
    });
    const grace = { seconds: -1n };
    const cancel = executions.cancelExecution({ workspaceId: "w", executionId: "x", grace });
    expect(await failureOf(cancel)).toMatchObject({ violations: ["grace"] });
  });

  it("L20 reading needs no epoch; whatever changes something does", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const fencing = { t: "epoch" as const, epoch: holderEpochFrom(5) };
    await stage.registry.open(stage.workspaceId as never, { ...openWish, fencing }, patient);
    const { executions } = clients;
    const start = script("sleep 60", { executionId: "f", epoch: 5n });
    const started = new Heard();
    const running = started.all(executions.execute(start));
    await started.until(() => started.started !== undefined);
    const ids = { workspaceId: "w", executionId: "f" };
    expect((await executions.getExecution(ids)).execution?.state).toBe(ExecutionState.RUNNING);
    expect((await executions.listExecutions({ workspaceId: "w" })).executions).toHaveLength(1);
    const follower = new Heard();
    const cancel = new AbortController();
    const following = follower.all(executions.attachExecution(ids, { signal: cancel.signal }));
    await follower.until(() => follower.started !== undefined);
    const refused = [
      await new Heard().all(executions.execute(script("touch ran"))),
      await interactive(executions, script("touch ran", { epoch: 4n })).over,
      await failureOf(executions.signalExecution({ ...ids, signal: "KILL" })),
      await failureOf(executions.cancelExecution({ ...ids, epoch: 4n })),
    ];
    expect(refused.map((failure) => failure?.reason)).toEqual([
      "HOLDER_EPOCH_REQUIRED",
      "HOLDER_EPOCH_SUPERSEDED",
      "HOLDER_EPOCH_REQUIRED",
      "HOLDER_EPOCH_SUPERSEDED",
    ]);
    expect(there(stage, "ran")).toBe(false);
    await executions.cancelExecution({ ...ids, epoch: 5n });
    expect(await running).toBeUndefined();
    expect(await following).toBeUndefined();
    expect(follower.exited?.status.case).toBe("signal");
  });
});

describe("input that waits for its program", () => {
  it("is bounded, whatever the client sends", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const cancel = new AbortController();
    const run = interactive(clients.executions, script("echo ready; sleep 60"), { signal: cancel.signal });
    await run.heard.until(() => run.heard.text === "ready\n");
    for (let at = 0; at < 1_000; at += 1) run.type(Buffer.alloc(64 * 1024));
    let last = -1;
    let same = 0;
    await expect
      .poll(
        () => {
          same = run.pulled() === last ? same + 1 : 0;
          last = run.pulled();
          return same;
        },
        { timeout: 15_000 },
      )
      .toBeGreaterThan(15);
    // The program's pipe, what waits here, and what HTTP/2 lets a client send before it is read, on both sides.
    expect(last * 64 * 1024).toBeLessThan(stdinWaitingMaxBytes + 12 * 1024 * 1024);
    cancel.abort();
    await run.over;
    await expect.poll(() => stage.listeners.admission.inProgress).toBe(0);
  });
});

describe("a drain of the service", () => {
  it("L44 lets a command go by name, and neither ends nor unbinds it: another replica has every byte of the rest, once", async () => {
    const stage = await terminalStage(2);
    const [one, two] = stage.services;
    if (!one || !two) throw new Error("not two replicas");
    using clients = clientsBy(grpcJs, one.listeners);
    using others = clientsBy(connect, two.listeners);
    const line =
      "exec 3<&0; (cat <&3 > in) & i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; sleep 0.01; done; wc -c < in";
    const start = script(line, { executionId: "d", onDisconnect: OnDisconnect.CANCEL });
    const run = interactive(clients.executions, start);
    run.type("typed");
    const follower = new Heard();
    const ids = { workspaceId: "w", executionId: "d" };
    await run.heard.until(() => run.heard.started !== undefined);
    const following = follower.all(clients.executions.attachExecution(ids));
    await follower.until(() => follower.text.length > 20);
    await expect.poll(() => there(stage, "in") && readFileSync(join(stage.agent.root, "in"), "utf8")).toBe("typed");
    const idle = one.listeners.admission.drain();
    const metadata = { execution_id: "d", why: "service_draining" };
    expect(await run.over).toMatchObject({
      reason: "EXECUTION_DETACHED",
      code: "Unknown",
      metadata: { ...metadata, next_offset: String(run.heard.next) },
    });
    expect(await following).toMatchObject({
      reason: "EXECUTION_DETACHED",
      code: "Unavailable",
      metadata: { ...metadata, next_offset: String(follower.next) },
    });
    await idle;
    const rest = new Heard(follower.next);
    const going = rest.all(others.executions.attachExecution({ ...ids, fromOffset: follower.next }));
    await rest.until(() => rest.text.length > 20);
    await others.executions.runCommand(script("touch go"));
    expect(await going).toBeUndefined();
    const lines = (follower.text + rest.text).trimEnd().split("\n");
    expect(lines.pop()?.trim()).toBe("5");
    expect(lines.map(Number)).toEqual(Array.from({ length: lines.length }, (_, at) => at + 1));
    expect(rest.missing).toBe(0);
  });
});

describe("tiny output", () => {
  it("is joined on its way, so that no client gets a message for each write of a byte", async () => {
    const stage = await terminalStage();
    using clients = clientsOf(stage, grpcJs);
    const heard = new Heard();
    const writes = 50_000;
    const start = script(`dd if=/dev/zero bs=1 count=${writes} 2>/dev/null`);
    expect(await heard.all(clients.executions.execute(start))).toBeUndefined();
    expect(heard.next).toBe(BigInt(writes));
    expect(heard.messages).toBeLessThan(writes / 5);
  });
});
