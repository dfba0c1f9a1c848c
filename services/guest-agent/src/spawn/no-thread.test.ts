import { expect, it, vi } from "vitest";
import { addon, startThread } from "../testing/addon.testing.ts";
import { notStarted } from "./not-started.ts";
import { waitCallsOf } from "./posix-calls.ts";
import { Reaper } from "./reaper.ts";
import { ThreadSpawner } from "./thread-spawner.ts";

const kernel = vi.hoisted(() => ({ hasThreads: false }));

vi.mock("node:worker_threads", async (importOriginal) => {
  const real = await importOriginal<typeof import("node:worker_threads")>();
  return {
    ...real,
    Worker: class extends real.Worker {
      constructor(...args: ConstructorParameters<typeof real.Worker>) {
        // As Node says it where pthread_create fails.
        if (!kernel.hasThreads)
          throw Object.assign(new Error("Worker initialization failure: EAGAIN"), { code: "ERR_WORKER_INIT_FAILED" });
        super(...args);
      }
    },
  };
});

it("a start for which the kernel gives no thread is refused for want of room, not called a program that cannot be run", async () => {
  const spawner = new ThreadSpawner(new Reaper(waitCallsOf(await addon())), await startThread());
  const start = { command: "true", args: [], cwd: "/", env: { PATH: process.env.PATH ?? "" } } as const;
  const spawn = () => spawner.spawn({ ...start, stdio: [undefined, undefined, undefined] });
  const error = await spawn().catch((refusal) => refusal);
  const noRoom = new Error("no room");
  expect(() => notStarted("true", error, () => noRoom as never)).toThrow(noRoom);
  kernel.hasThreads = true;
  expect(await (await spawn()).exited).toEqual({ code: 0 });
});
