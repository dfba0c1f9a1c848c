import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { describe, expect, it } from "vitest";
import { agentProcess, soon } from "../testing/agent-process.testing.ts";
import { attach, cancel, type FollowedExecution, script, start } from "../testing/followed-execution.testing.ts";
import { isGone, readProcess } from "./processes.ts";

const { signalExecution, writeStdin } = ExecutionService.method;
const started = (run: FollowedExecution) => run.until(() => run.started !== undefined || run.exited !== undefined);

describe("many at once", () => {
  it("G9 64 cancels of 64 commands: each is confirmed gone, and each has its own end", async () => {
    const { link } = await agentProcess();
    const runs: FollowedExecution[] = [];
    for (let at = 0; at < 64; at += 1) {
      runs.push(await script(link, `n${at}`, "setsid sleep 301 & echo $!; exec sleep 302"));
    }
    await Promise.all(runs.map((run) => run.until(() => run.text.includes("\n"))));
    const answers = await Promise.all(runs.map((_, at) => cancel(link, `n${at}`)));
    expect(answers.every(({ alreadyEnded }) => !alreadyEnded)).toBe(true);
    for (const run of runs) {
      expect(isGone(readProcess(Number(run.started?.pid)))).toBe(true);
      expect(isGone(readProcess(Number(run.text)))).toBe(true);
    }
    expect(await Promise.all(runs.map((run) => run.end()))).toEqual(runs.map(() => "SIGTERM"));
  });

  it("G9 G10 a cancel that meets the command's own end either had effect on all of it, or says that it came too late", async () => {
    const { link } = await agentProcess();
    const late: boolean[] = [];
    const next = Array.from({ length: 40 }, (_, at) => at).values();
    const race = async (): Promise<void> => {
      for (const at of next) {
        const id = `n${at}`;
        const pause = `0.0${at % 5}`;
        const run = await script(link, id, `sleep 301 & echo $!; sleep ${pause}`, { drain: { seconds: 0n } });
        await run.until(() => run.text.includes("\n"));
        const { alreadyEnded } = await cancel(link, id);
        await run.end();
        const isLeft = !isGone(readProcess(Number(run.text)));
        expect({ id, isLeft, listed: run.exited?.leftovers.length }).toEqual({
          id,
          isLeft: alreadyEnded,
          listed: alreadyEnded ? 1 : 0,
        });
        late.push(alreadyEnded);
      }
    };
    await Promise.all(Array.from({ length: 8 }, race));
    expect(late).toHaveLength(40);
  });

  it("G8 G9 readers, cancels and signals of one command agree on its end", async () => {
    const { link } = await agentProcess();
    const run = await script(link, "one", "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.02; done");
    await run.until(() => run.text === "ready\n");
    const readers = await Promise.all(Array.from({ length: 32 }, () => attach(link, "one")));
    const signals = Array.from({ length: 16 }, () =>
      link.call(signalExecution, { executionId: "one", signal: "USR1" }, { within: soon() }).catch((error) => error),
    );
    const cancels = Array.from({ length: 16 }, () => cancel(link, "one"));
    await Promise.all(cancels);
    const answers = await Promise.all(signals);
    expect(answers.every((answer) => typeof answer.alreadyEnded === "boolean")).toBe(true);
    const ends = await Promise.all([run, ...readers].map((reader) => reader.end()));
    expect(new Set(ends).size).toBe(1);
    expect(new Set([run, ...readers].map((reader) => reader.text)).size).toBe(1);
    expect((await cancel(link, "one")).alreadyEnded).toBe(true);
  });
});

describe("what comes at the wrong time", () => {
  it("G12 input that is closed twice, by many, and input after the end, are answered and harm nobody", async () => {
    const { link } = await agentProcess();
    const write = (offset: bigint, text: string, end: boolean) =>
      link.call(writeStdin, { executionId: "reads", offset, data: Buffer.from(text), end }, { within: soon() });
    const run = await start(link, "reads", { command: "sh", args: ["-c", "cat; sleep 0.1"], streamedStdin: true });
    await started(run);
    const ends = await Promise.all(Array.from({ length: 16 }, () => write(0n, "abc", true)));
    expect(ends.map(({ nextOffset }) => nextOffset)).toEqual(ends.map(() => 3n));
    expect((await write(3n, "", true)).nextOffset).toBe(3n);
    expect(await run.end()).toBe(0);
    expect(run.text).toBe("abc");
    expect((await write(3n, "", true)).nextOffset).toBe(3n);
    expect(await write(3n, "late", false).catch((error) => error)).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  it("G9 a cancel that comes with the start waits for it, and then has effect", async () => {
    const { link } = await agentProcess();
    for (let at = 0; at < 16; at += 1) {
      const id = `n${at}`;
      const run = await start(link, id, { command: "sleep", args: ["301"] });
      for (;;) {
        // A call may come before the start, on its own connection.
        const answer = await cancel(link, id).catch((error) => error);
        if (answer.reason !== "EXECUTION_NOT_FOUND") break;
      }
      expect(await run.end()).toBe("SIGTERM");
    }
  });
});
