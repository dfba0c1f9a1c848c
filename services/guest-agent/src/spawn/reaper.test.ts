import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Reaper } from "./reaper.ts";
import type { ExitStatus } from "./spawner.ts";

/** Children as the kernel keeps them: those that have ended stand in a row, Node's among them. */
class Kernel {
  readonly ended = new Map<number, number>();
  anyEnded = (): number | undefined => this.ended.keys().next().value;
  wait = (pid: number): number | undefined => {
    const status = this.ended.get(pid);
    this.ended.delete(pid);
    return status;
  };
}

describe("the reaper", () => {
  it("B17 takes every one of its own and none of Node's, in whatever order they end", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ mine: fc.boolean(), code: fc.nat(255), look: fc.boolean() }), { maxLength: 30 }),
        (children) => {
          const kernel = new Kernel();
          const before = process.listeners("SIGCHLD");
          const reaper = new Reaper(kernel);
          const look = process.listeners("SIGCHLD").find((listener) => !before.includes(listener));
          if (look === undefined) throw new Error("it does not listen");
          process.off("SIGCHLD", look);
          const seen = new Map<number, ExitStatus>();
          for (const [at, { mine, code, look: looks }] of children.entries()) {
            const pid = at + 1;
            // Resolvers run later; what is taken shows in the kernel at once.
            if (mine) void reaper.exitOf(pid).then((status) => seen.set(pid, status));
            kernel.ended.set(pid, code << 8);
            if (looks) look("SIGCHLD");
          }
          look("SIGCHLD");
          const left = children.flatMap(({ mine }, at) => (mine ? [] : [at + 1]));
          expect([...kernel.ended.keys()]).toEqual(left);
        },
      ),
    );
  });

  it("B17 loses none that ended before its pid was known, nor takes it while whoever started it looks at it", async () => {
    const kernel = new Kernel();
    const before = process.listeners("SIGCHLD");
    const reaper = new Reaper(kernel);
    const look = process.listeners("SIGCHLD").find((listener) => !before.includes(listener));
    if (look === undefined) throw new Error("it does not listen");
    process.off("SIGCHLD", look);
    const known = reaper.exitOf(1);
    kernel.ended.set(2, 5 << 8); // Nobody has told of it, and it stands before the other.
    kernel.ended.set(1, 3 << 8);
    look("SIGCHLD");
    expect(await known).toEqual({ code: 3 });
    expect([...kernel.ended.keys()]).toEqual([2]);
    const late = reaper.exitOf(2); // Its SIGCHLD was the one above.
    await Promise.resolve();
    expect([...kernel.ended.keys()]).toEqual([2]);
    expect(await late).toEqual({ code: 5 });
    expect([...kernel.ended.keys()]).toEqual([]);
  });

  it("says that a child ended although its status is lost, and tells signals by name", async () => {
    const kernel = new Kernel();
    const before = process.listeners("SIGCHLD");
    const reaper = new Reaper({
      anyEnded: kernel.anyEnded,
      wait: (pid) => {
        if (pid === 3) {
          kernel.ended.delete(3);
          throw new Error("ECHILD");
        }
        return kernel.wait(pid);
      },
    });
    const exits = [1, 2, 3].map((pid) => reaper.exitOf(pid));
    for (const [pid, status] of [
      [1, 9],
      [2, 40],
      [3, 0],
    ] as const)
      kernel.ended.set(pid, status);
    for (const listener of process.listeners("SIGCHLD"))
      if (!before.includes(listener)) {
        listener("SIGCHLD");
        process.off("SIGCHLD", listener);
      }
    expect(await Promise.all(exits)).toEqual([{ signal: "SIGKILL" }, { signal: "SIG40" }, { code: 255 }]);
  });
});
