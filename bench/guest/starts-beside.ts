import { systemClock } from "../../packages/async/src/index.ts";
import { LinkClient } from "../../packages/guest-link/src/index.ts";
import { PosixSpawner } from "../../services/guest-agent/src/spawn/posix-spawner.ts";
import { runCommand } from "../../test/guest-fuzz/link-streams.ts";
import { koffi } from "./addon.ts";
import type { Beside, Started } from "./beside.ts";

// A process of its own, so that what it costs to ask is no cost of whoever measures: starts so many programs a second until it is told to
// stop, through an agent, or itself for comparison.
const wish: Beside = JSON.parse(process.argv[2] ?? "");
let started = 0;
let failure: unknown;
const start = wish.agent === undefined ? startHere() : startThrough(wish.agent);
const timer = setInterval(() => {
  started += 1;
  start(started).catch((error) => {
    failure ??= error;
  });
}, 1_000 / wish.perSecond);
process.send?.("starting");
process.once("message", () => {
  clearInterval(timer);
  process.send?.({ started, failure: failure === undefined ? "" : String(failure) } satisfies Started);
  process.disconnect();
  process.exit();
});

function startThrough(agent: NonNullable<Beside["agent"]>): (at: number) => Promise<unknown> {
  const link = new LinkClient(agent, systemClock);
  return (at) => runCommand(link, { executionId: `${process.pid}-${at}`, command: { command: "true" } }, 0n);
}

function startHere(): () => Promise<unknown> {
  const spawner = new PosixSpawner(koffi());
  const env = { PATH: process.env.PATH ?? "" };
  const stdio = [undefined, undefined, undefined] as const;
  return async () => (await spawner.spawn({ command: "true", args: [], env, cwd: "/", stdio })).exited;
}
