import { readdirSync, readFileSync } from "node:fs";
import { systemClock } from "@holdfast/async";
import { startsHeldAfterMs } from "@holdfast/contract";
import { describe, expect, it } from "vitest";
import { addon, startThread } from "../testing/addon.testing.ts";
import { canHoldPrograms, heldProgram } from "../testing/held-program.testing.ts";
import { StartsHeld } from "./not-started.ts";
import { waitCallsOf } from "./posix-calls.ts";
import { Reaper } from "./reaper.ts";
import type { ProgramStart } from "./spawner.ts";
import { ThreadSpawner } from "./thread-spawner.ts";

const reaper = new Reaper(waitCallsOf(await addon()));
const file = await startThread();
const possible = await canHoldPrograms();
const common = { cwd: "/", env: { PATH: process.env.PATH ?? "" }, stdio: [undefined, undefined, undefined] } as const;
const program = (path: string): ProgramStart => ({ ...common, command: path, args: [] });
const sh = (script: string): ProgramStart => ({ ...common, command: "sh", args: ["-c", script] });

/** This process's children, by pid, with their state. */
function children(): Map<number, string> {
  const found = new Map<number, string>();
  for (const pid of readdirSync("/proc").map(Number).filter(Number.isInteger)) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const [state = "", parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (Number(parent) === process.pid) found.set(pid, state);
    } catch {
      // Gone meanwhile.
    }
  }
  return found;
}

describe("a start in a thread (some skipped where the kernel gives no leases)", () => {
  it.runIf(possible)("does not hold the event loop up while the kernel does not begin the program", async () => {
    const held = await heldProgram("exit 4");
    const spawner = new ThreadSpawner(reaper, file);
    let began = false;
    const start = spawner.spawn(program(held.path)).then((running) => {
      began = true;
      return running;
    });
    await held.reached; // On the loop nobody would hear this, and the kernel ends the lease after 45 s.
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect([began, spawner.isBusy]).toEqual([false, true]);
    held.release();
    expect(await (await start).exited).toEqual({ code: 4 });
    expect(spawner.isBusy).toBe(false);
  });

  it.runIf(possible)("holds none of the agent's descriptors while it waits", async () => {
    const held = await heldProgram("exit 0");
    const before = children();
    const start = new ThreadSpawner(reaper, file).spawn(program(held.path));
    await held.reached;
    const [made] = [...children().keys()].filter((pid) => !before.has(pid));
    // The third one is what exec waits for.
    const fds = readdirSync(`/proc/${made}/fd`).map(Number);
    expect(fds.filter((fd) => fd > 2)).toEqual([]);
    held.release();
    await (await start).exited;
  });

  it("B17 tells the end of a program that ended before its pid was known", async () => {
    const before = children();
    const start = new ThreadSpawner(reaper, file).spawn(sh("exit 9"));
    // The loop takes neither the thread's answer nor SIGCHLD while this step lasts.
    const ended = (): number | undefined =>
      [...children()].find(([pid, state]) => state === "Z" && !before.has(pid))?.[0];
    while (ended() === undefined);
    const pid = ended();
    const running = await start;
    expect(running.pid).toBe(pid);
    expect(await running.exited).toEqual({ code: 9 });
  });

  it("begins in the order in which they were asked for, each told its own", async () => {
    const spawner = new ThreadSpawner(reaper, file);
    const codes = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        if (at % 5 === 4) return spawner.spawn(program("/no/such/program")).catch((error) => error.code);
        return (await spawner.spawn(sh(`exit ${at}`))).exited;
      }),
    );
    expect(codes).toEqual(Array.from({ length: 20 }, (_, at) => (at % 5 === 4 ? "ENOENT" : { code: at })));
  });

  it.runIf(possible)(
    "refuses others by name once the kernel has not answered one for long, and until it does",
    async () => {
      const held = await heldProgram("exit 4");
      const due = new Map<() => void, number>();
      const clock = {
        ...systemClock,
        schedule: (afterMs: number, run: () => void) => {
          due.set(run, afterMs);
          return () => due.delete(run);
        },
      };
      const spawner = new ThreadSpawner(reaper, file, clock);
      const start = spawner.spawn(program(held.path));
      const waiting = spawner.spawn(sh("exit 7"));
      waiting.catch(() => undefined); // Looked at below.
      await held.reached;
      expect([...due.values()]).toEqual([startsHeldAfterMs]);
      for (const run of due.keys()) run();
      await expect(waiting).rejects.toThrow(held.path);
      await expect(waiting).rejects.toBeInstanceOf(StartsHeld);
      await expect(spawner.spawn(sh("exit 8"))).rejects.toBeInstanceOf(StartsHeld);
      held.release();
      expect(await (await start).exited).toEqual({ code: 4 });
      expect(await (await spawner.spawn(sh("exit 9"))).exited).toEqual({ code: 9 });
      expect(due.size).toBe(0);
    },
  );

  it.runIf(possible)(
    "follows what it had started when its thread ended, starts nothing that was not begun, and goes on with another thread",
    async () => {
      const held = await heldProgram("exit 6");
      const spawner = new ThreadSpawner(reaper, file);
      const start = spawner.spawn(program(held.path));
      const next = spawner.spawn(sh("exit 7"));
      next.catch(() => undefined); // Looked at below.
      await held.reached;
      spawner.breakThread();
      held.release();
      expect(await (await start).exited).toEqual({ code: 6 });
      await expect(next).rejects.toMatchObject({ code: "EAGAIN" });
      expect(await (await spawner.spawn(sh("exit 8"))).exited).toEqual({ code: 8 });
    },
  );
});
