import { setTimeout as readsSlowly } from "node:timers/promises";
import { ExecutionState, OnDisconnect } from "@holdfast/api/holdfast/v1/execution_pb";
import { describe, expect, it } from "vitest";
import { delayProxy } from "./delay-proxy.ts";
import { Heard, interactive } from "./interactive-client.ts";
import { terminalStage } from "./terminal-stage.ts";
import { clientsBy, failureOf, type Way, ways } from "./ways.ts";

const way = (name: string): Way => ways.find((one) => one.name === name) as Way;
const grpcJs = way("grpc-js on --listen");
const connect = way("Connect, HTTP/2");
const browser = way("Connect, HTTP/1.1");

const workspaceId = "w";
const script = (line: string, more: object = {}) => ({ workspaceId, command: "sh", args: ["-c", line], ...more });
const numbers = (count: number): string => Array.from({ length: count }, (_, at) => `${at + 1}\n`).join("");

describe("faults that people met in systems like this one, by a client of the service", () => {
  it.each([grpcJs, browser])(
    "B04 output is whole for a client that is 80 ms away and reads 200 KB/s, by $name",
    async (by) => {
      const stage = await terminalStage();
      await using near = await delayProxy(stage.at.address, 80);
      await using web = await delayProxy(stage.at.webAddress, 80);
      using clients = clientsBy(by, { address: near.address, webAddress: web.address });
      const count = 90_000;
      const heard = new Heard();
      const beganMs = performance.now();
      const pace = (): unknown => readsSlowly(Math.max(0, Number(heard.next) / 200 - (performance.now() - beganMs)));
      expect(await heard.all(clients.executions.execute(script(`seq 1 ${count}`)), pace)).toBeUndefined();
      expect(heard.exited?.status).toEqual({ case: "exitCode", value: 0 });
      expect(heard.missing).toBe(0);
      expect(heard.text).toBe(numbers(count));
      expect(performance.now() - beganMs).toBeGreaterThan(2_000);
    },
    60_000,
  );

  it.each([grpcJs, browser])(
    "B06 exactly what was written, and one exit, at every size around a buffer's, by $name",
    async (by) => {
      const stage = await terminalStage();
      using clients = clientsBy(by, stage.at);
      for (const size of [0, 1, 4_095, 4_096, 4_097, 32_767, 32_768, 65_535, 65_536, 65_537]) {
        let bytes = 0;
        const cases: string[] = [];
        const start = { workspaceId, command: "head", args: ["-c", String(size), "/dev/zero"] };
        for await (const { event } of clients.executions.execute(start)) {
          if (event.case === "output") bytes += event.value.data.length;
          if (event.case === "exited") expect(event.value.outputBytes).toBe(BigInt(size));
          if (cases.at(-1) !== event.case) cases.push(event.case ?? "none");
        }
        expect(bytes).toBe(size);
        expect(cases).toEqual(size === 0 ? ["started", "exited"] : ["started", "output", "exited"]);
      }
    },
  );

  it.each([grpcJs, connect])(
    "B09 a call ends within 2 s of its program, though its client never ends its input, by $name",
    async (by) => {
      const stage = await terminalStage();
      using clients = clientsBy(by, stage.at);
      const beganMs = performance.now();
      const run = interactive(clients.executions, script("echo hi"));
      expect(await run.over).toBeUndefined();
      expect(performance.now() - beganMs).toBeLessThan(2_000);
      expect([run.heard.text, run.heard.exited?.status]).toEqual(["hi\n", { case: "exitCode", value: 0 }]);
      await expect.poll(() => stage.listeners.admission.inProgress).toBe(0);
    },
  );

  it("B11 a background job that holds the output open is told, and holds nobody up", async () => {
    const stage = await terminalStage();
    using clients = clientsBy(grpcJs, stage.at);
    const heard = new Heard();
    const beganMs = performance.now();
    expect(await heard.all(clients.executions.execute(script("sleep 300 & echo ok")))).toBeUndefined();
    expect(performance.now() - beganMs).toBeLessThan(3_000);
    expect([heard.text, heard.exited?.status]).toEqual(["ok\n", { case: "exitCode", value: 0 }]);
    expect(heard.exited?.leftovers.map(({ name }) => name)).toEqual(["sleep"]);
    const next = await clients.executions.runCommand(script("echo next; kill $(pgrep -f 'sleep 300')"));
    expect(Buffer.from(next.stdout).toString()).toBe("next\n");
  });

  it("B35 a call's deadline ends the call, and neither its program nor who attaches later", async () => {
    const stage = await terminalStage();
    using clients = clientsBy(grpcJs, stage.at);
    const { executions } = clients;
    const ids = { workspaceId, executionId: "job" };
    const line = "i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; sleep 0.01; done; echo end; exit 4";
    const start = script(line, { ...ids, onDisconnect: OnDisconnect.DETACH });
    const first = new Heard();
    expect(await first.all(executions.execute(start, { timeoutMs: 400 }))).toMatchObject({ code: "DeadlineExceeded" });
    let { next } = first;
    let { text } = first;
    for (let time = 0; time < 2; time += 1) {
      const attach = new Heard(next);
      const request = { ...ids, fromOffset: next };
      expect(await attach.all(executions.attachExecution(request, { timeoutMs: 400 }))).toMatchObject({
        code: "DeadlineExceeded",
      });
      expect(attach.next).toBeGreaterThan(next);
      expect((await executions.getExecution(ids)).execution?.state).toBe(ExecutionState.RUNNING);
      ({ next } = attach);
      text += attach.text;
    }
    await executions.runCommand(script("touch go"));
    const last = new Heard(next);
    expect(await last.all(executions.attachExecution({ ...ids, fromOffset: next }))).toBeUndefined();
    const lines = (text + last.text).trimEnd().split("\n");
    expect(lines.pop()).toBe("end");
    expect(lines.map(Number)).toEqual(Array.from({ length: lines.length }, (_, at) => at + 1));
    expect(last.exited?.status).toEqual({ case: "exitCode", value: 4 });
  });

  it.each([grpcJs, connect])("B43 400 attaches on one channel hold up no call on it, by $name", async (by) => {
    const stage = await terminalStage();
    using clients = clientsBy(by, stage.at);
    const { executions } = clients;
    const ids = { workspaceId, executionId: "quiet" };
    const started = new Heard();
    const running = started.all(executions.execute({ ...ids, command: "sleep", args: ["300"] }));
    await started.until(() => started.started !== undefined);
    const followers = Array.from({ length: 400 }, () => new Heard());
    const following = followers.map((heard) => heard.all(executions.attachExecution(ids)));
    await Promise.all(followers.map((heard) => heard.until(() => heard.started !== undefined)));
    expect(stage.listeners.admission.inProgress).toBe(401);
    const beganMs = performance.now();
    expect((await executions.getExecution(ids)).execution?.state).toBe(ExecutionState.RUNNING);
    expect(performance.now() - beganMs).toBeLessThan(1_000);
    await executions.cancelExecution(ids);
    expect(new Set(await Promise.all([running, ...following]))).toEqual(new Set([undefined]));
  });

  it("B52 a line of 8 MB and an input of 2 MB pass clients with default limits; an input beyond the limit is refused by it", async () => {
    const stage = await terminalStage();
    using clients = clientsBy(grpcJs, stage.at);
    const line = new Heard();
    expect(
      await line.all(clients.executions.execute(script("head -c 8388608 /dev/zero | tr '\\0' x; echo"))),
    ).toBeUndefined();
    expect([line.text.length, line.missing, line.text.endsWith("x\n")]).toEqual([8_388_609, 0, true]);
    const stdin = Buffer.alloc(2 * 1024 * 1024, "0123456789abcdef");
    const back = new Heard();
    expect(await back.all(clients.executions.execute({ workspaceId, command: "cat", stdin }))).toBeUndefined();
    expect(Buffer.from(back.text, "latin1").equals(stdin)).toBe(true);
    const tooLarge = { workspaceId, command: "cat", stdin: Buffer.alloc(5 * 1024 * 1024) };
    const refusal = await failureOf(clients.executions.runCommand(tooLarge));
    expect(refusal).toMatchObject({ reason: "MESSAGE_TOO_LARGE", code: "ResourceExhausted" });
    expect(refusal.message).toMatch(/4[.,]?\d* ?MiB|4194304|4,194,304/);
  });

  it.each([
    ["that reads none of 64 MB", "true", [], 1_024, { case: "exitCode", value: 0 }],
    ["that reads one byte of 10 MB", "head", ["-c", "1"], 160, { case: "exitCode", value: 0 }],
    ["that is missing", "no-such-program", [], 160, { case: "exitCode", value: 127 }],
  ] as const)("B57 input for a program %s harms nobody", async (_, command, args, pieces, status) => {
    const stage = await terminalStage();
    using clients = clientsBy(grpcJs, stage.at);
    const run = interactive(clients.executions, { workspaceId, command, args: [...args] });
    for (let at = 0; at < pieces; at += 1) run.type(Buffer.alloc(64 * 1024, "x"));
    run.endInput();
    expect(await run.over).toBeUndefined();
    expect(run.heard.exited?.status).toEqual(status);
    expect(run.heard.text).toBe(command === "head" ? "x" : "");
    expect(stage.agent.child.exitCode).toBeNull();
    const next = await clients.executions.runCommand(script("echo on"));
    expect(Buffer.from(next.stdout).toString()).toBe("on\n");
    await expect.poll(() => stage.listeners.admission.inProgress).toBe(0);
  });
});
