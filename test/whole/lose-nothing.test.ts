import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ExecutionState } from "@holdfast/api/holdfast/v1/execution_pb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  dataFolder,
  eventually,
  processesNaming,
  reasonOf,
  shell,
  startCluster,
  startServiceOn,
  webClientsOf,
  webTargetOf,
} from "./harness.ts";

type Service = Awaited<ReturnType<typeof startServiceOn>>;

let folder: Awaited<ReturnType<typeof dataFolder>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
let services: Service[];

beforeEach(async () => {
  folder = await dataFolder();
  cluster = await startCluster(folder.path);
  services = [];
}, 60_000);

afterEach(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await cluster?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
}, 60_000);

async function start(): Promise<Service> {
  const service = await startServiceOn(cluster.flags);
  services.push(service);
  return service;
}

const numbers = (count: number): string => Array.from({ length: count }, (_, at) => `${at + 1}\n`).join("");

describe("SIGKILL of the service loses nothing", () => {
  it("a command is attached by id and offset through the next process: every byte once, over three kills", async () => {
    let service = await start();
    await service.workspaces.openWorkspace({ workspaceId: "w" });
    // It stands still after each 800 lines until the service that was killed among them has a successor.
    const line =
      "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i; [ $((i % 800)) != 0 ] || until [ -e go$i ]; do sleep 0.05; done; done";
    const command = { workspaceId: "w", executionId: "long", command: "sh", args: ["-c", line], retainOutput: true };
    let text = "";
    let next = 0n;
    let isExited = false;
    let kills = 0;
    const unexpected: string[] = [];
    for (let first = true; ; first = false) {
      const events = first
        ? service.executions.execute(command)
        : service.executions.attachExecution({ workspaceId: "w", executionId: "long", fromOffset: next });
      try {
        for await (const { event } of events) {
          if (event.case === "gap") unexpected.push(`a gap: ${event.value.from} to ${event.value.to}`);
          if (event.case === "exited") isExited = true;
          if (event.case !== "output") continue;
          if (event.value.offset !== next) unexpected.push(`${event.value.offset} where ${next} was to come`);
          next += BigInt(event.value.data.length);
          text += Buffer.from(event.value.data).toString("latin1");
          const isAmong = next > BigInt(numbers(800 * (kills + 1)).length - 2_000);
          if (kills < 3 && !service.child.killed && isAmong) service.child.kill("SIGKILL");
        }
      } catch (error) {
        if (!service.child.killed) throw error;
      }
      if (isExited) break;
      service = await start();
      kills += 1;
      await shell(service, "w", `touch go${800 * kills}`);
    }
    expect(unexpected).toEqual([]);
    expect(text).toBe(numbers(3000));
    expect(kills).toBe(3);
  });

  it("a terminal is taken up by its attachment: every typed byte received once, every byte of output once", async () => {
    let service = await start();
    await service.workspaces.openWorkspace({ workspaceId: "w" });
    const lines = Array.from({ length: 240 }, (_, at) => `typed ${at} ${"y".repeat(at % 70)}\n`);
    const typed = Buffer.from(lines.join(""));
    // It answers each byte, and hashes what it received.
    const line = `stty raw -echo; printf ready; head -c ${typed.length} | tee copy; sha256sum copy`;
    const ids = { workspaceId: "w", sessionId: "t" };
    await service.sessions.openTerminal({
      ...ids,
      program: { command: "/bin/sh", args: ["-c", line], size: { columns: 80, rows: 24 } },
    });
    let attachmentId = "";
    let offset = 0n;
    let text = "";
    let sequence: bigint | undefined;
    let isExited = false;
    const follow = async (from: Service, attached: () => void): Promise<void> => {
      const request = { ...ids, attachmentId, fromOffset: offset };
      for await (const { event } of from.sessions.attachTerminal(request)) {
        if (event.case === "attached") {
          ({ attachmentId } = event.value);
          sequence = event.value.nextInputSequence;
          attached();
        } else if (event.case === "data") {
          expect(event.value.offset).toBe(offset);
          offset += BigInt(event.value.data.length);
          text += Buffer.from(event.value.data).toString("latin1");
        } else if (event.case === "gap") throw new Error("a gap");
        else if (event.case === "exited") isExited = true;
      }
    };
    let first: bigint | undefined;
    for (const killAfter of [60, 120, 180, undefined]) {
      const attached = Promise.withResolvers<void>();
      const following = follow(service, attached.resolve).catch((error: unknown) => {
        if (killAfter === undefined) throw error;
      });
      await attached.promise;
      first ??= sequence;
      if (sequence === undefined || first === undefined) throw new Error("not attached");
      // From the one that the guest expects next: what was on its way when the service died is not sent again.
      for (let at = Number(sequence - first); at < lines.length; at += 1) {
        const write = { ...ids, attachmentId, sequence: first + BigInt(at), data: Buffer.from(lines[at] ?? "") };
        const writing = service.sessions.writeTerminal(write);
        // Between the effect and its answer, as often as not.
        if (at === killAfter) service.child.kill("SIGKILL");
        const isWritten = await writing.then(
          () => true,
          () => false,
        );
        if (!isWritten || at === killAfter) break;
      }
      await following;
      if (killAfter !== undefined) service = await start();
    }
    expect(isExited).toBe(true);
    const hash = createHash("sha256").update(typed).digest("hex");
    expect(text.startsWith(`ready${typed.toString("latin1")}${hash}`)).toBe(true);
  });

  it("an upload under way leaves the old file whole, and nothing beside it", async () => {
    const service = await start();
    await service.workspaces.openWorkspace({ workspaceId: "w" });
    await shell(service, "w", "echo old > file");
    const sent = Promise.withResolvers<void>();
    const uploading = service.files.writeFile(
      (async function* () {
        yield { part: { case: "start" as const, value: { workspaceId: "w", path: "file" } } };
        for (let part = 0; part < 8; part += 1) {
          yield { part: { case: "data" as const, value: new Uint8Array(256 * 1024) } };
        }
        sent.resolve();
        await new Promise(() => undefined); // It never comes to its end.
      })(),
    );
    uploading.catch(() => undefined);
    await sent.promise;
    await service.kill();
    const next = await start();
    const left = await eventually(20_000, async () => {
      const { stdout } = await shell(next, "w", "ls -A; ls -A .* 2>/dev/null | head -20; cat file");
      return stdout.includes("holdfast") ? undefined : stdout;
    });
    expect(left).toContain("file\n");
    expect(left.endsWith("old\n")).toBe(true);
    const { stdout } = await shell(next, "w", "find . -type f -size +0");
    expect(stdout).toBe("./file\n");
  });
});

describe("SIGTERM drains within its grace", () => {
  it("with clients that never read, watchers, terminals and an agent that is stopped: named ends, code 0", async () => {
    const service = await start();
    const web = webClientsOf(service);
    for (const workspaceId of ["w", "stuck"]) await service.workspaces.openWorkspace({ workspaceId });
    await service.sessions.openTerminal({
      workspaceId: "w",
      sessionId: "t",
      program: { command: "/bin/sh", args: ["-c", "yes"], size: { columns: 80, rows: 24 } },
    });
    // Read once, and never again: their buffers are full by the time of the drain.
    const unread = [
      service.executions.execute({ workspaceId: "w", executionId: "e1", command: "yes" }),
      web.executions.execute({ workspaceId: "w", executionId: "e2", command: "yes" }),
      service.sessions.attachTerminal({ workspaceId: "w", sessionId: "t" }),
    ].map((stream) => stream[Symbol.asyncIterator]());
    for (const stream of unread) await stream.next();
    const watching = (async () => {
      for await (const _ of service.workspaces.watchWorkspace({ workspaceId: "w" }));
    })();
    const { workspace } = await service.workspaces.getWorkspace({ workspaceId: "stuck" });
    const stopped = await processesNaming(`HOLDFAST_AGENT_TOKEN=${workspace?.identity?.podUid}`);
    expect(stopped.length).toBeGreaterThan(0);
    for (const pid of stopped) process.kill(pid, "SIGSTOP");
    try {
      const hanging = shell(service, "stuck", "true");
      const wait = service.executions.execute({ workspaceId: "w", command: "sleep", args: ["60"] });
      const waiting = (async () => {
        for await (const { event } of wait) if (event.case === "started") service.child.kill("SIGTERM");
      })();
      const beganMs = performance.now();
      expect((await reasonOf(watching)).reason).toBe("SERVICE_DRAINING");
      expect((await reasonOf(waiting)).reason).toBe("EXECUTION_DETACHED");
      const health = await fetch(`http://${webTargetOf(service)}/healthz`);
      expect([health.status, await health.text()]).toEqual([503, "draining\n"]);
      // The agent does not answer: which of its ends comes first depends on the machine.
      expect(["SERVICE_DRAINING", "EXECUTION_DETACHED", "AGENT_UNREACHABLE"]).toContain(
        (await reasonOf(hanging)).reason,
      );
      expect(await service.stop()).toBe(0);
      expect(performance.now() - beganMs).toBeLessThan(15_000);
    } finally {
      for (const pid of stopped) process.kill(pid, "SIGCONT");
    }
    // Nobody ended what ran.
    const next = await start();
    for (const executionId of ["e1", "e2"]) {
      const { execution } = await next.executions.getExecution({ workspaceId: "w", executionId });
      expect(execution?.state).toBe(ExecutionState.RUNNING);
    }
    const { sessions } = await next.sessions.listSessions({ workspaceId: "w" });
    expect(sessions.map(({ sessionId, attached }) => [sessionId, attached])).toEqual([["t", expect.any(Boolean)]]);
  });

  it("B47 with 50 attaches, some of clients that are stopped: code 0 in its grace, and no byte lost on the next process", async () => {
    const service = await start();
    await service.workspaces.openWorkspace({ workspaceId: "w" });
    const line =
      "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; [ $i != 1000 ] || until [ -e go ]; do sleep 0.05; done; done";
    const ids = { workspaceId: "w", executionId: "long" };
    const run = { ...ids, command: "sh", args: ["-c", line], retainOutput: true };
    const starting = service.executions.execute(run)[Symbol.asyncIterator]();
    await starting.next();
    const stopped = spawn(
      process.execPath,
      [join(import.meta.dirname, "busy-client.ts"), service.target, webTargetOf(service), "w"],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    try {
      await once(createInterface({ input: stopped.stdout }), "line");
      stopped.kill("SIGSTOP");
      const texts = Array.from({ length: 50 }, () => "");
      const follow = async (from: Service, at: number): Promise<void> => {
        const fromOffset = BigInt(texts[at]?.length ?? 0);
        for await (const { event } of from.executions.attachExecution({ ...ids, fromOffset })) {
          if (event.case === "output") texts[at] += Buffer.from(event.value.data).toString("latin1");
          else if (event.case === "gap") throw new Error("a gap");
        }
      };
      const ends = texts.map((_, at) => reasonOf(follow(service, at)));
      await eventually(30_000, async () => (texts.every((text) => text === numbers(1000)) ? true : undefined));
      const beganMs = performance.now();
      expect(await service.stop()).toBe(0);
      expect(performance.now() - beganMs).toBeLessThan(15_000);
      const reasons = new Set((await Promise.all(ends)).map(({ reason, code }) => `${reason} ${code}`));
      expect([...reasons]).toEqual(["EXECUTION_DETACHED Unavailable"]);
      const next = await start();
      const following = texts.map((_, at) => follow(next, at));
      await shell(next, "w", "touch go");
      await Promise.all(following);
      expect(texts.every((text) => text === numbers(2000))).toBe(true);
    } finally {
      stopped.kill("SIGKILL");
    }
  });
});
