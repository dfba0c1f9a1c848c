import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemClock } from "@holdfast/async";
import { podUidOf } from "@holdfast/contract";
import { guestDialler } from "@holdfast/guest-client";
import { openWish, patient, settleTasks, stage, workspaceId } from "@holdfast/testkit";
import { expect, it } from "vitest";
import { Watching } from "./watching.ts";

const count = 10_000;

/** Bytes on the heap that something holds. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

it(`L37 ${count} idle handles cost no request, no timer, and at most 20 KiB each`, async () => {
  const on = stage();
  const ids = Array.from({ length: count }, (_, at) => workspaceId(`idle-${at}`));
  for (const id of ids) on.cluster.seed(id);
  const watching = new Watching(on.deps);
  const before = heapBytes();
  for (const id of ids) await watching.registry.open(id, openWish, patient);
  // With the client of a real guest each, which the fake's is smaller than.
  const dialler = guestDialler(systemClock);
  const guests = ids.map((_, at) => dialler.guest({ host: "127.0.0.1", port: 1, podUid: podUidOf(`pod-${at}`) }));
  const perHandle = (heapBytes() - before) / count / 1024;
  process.stdout.write(`${perHandle.toFixed(1)} KiB of heap per idle handle, the fakes' own records of it included\n`);
  expect(perHandle).toBeLessThan(20);
  expect(guests.length).toBe(watching.registry.size);

  on.cluster.plan.requests.length = 0;
  const asked = on.guests.calls.length;
  expect(on.clock.pending).toBe(0);
  await on.clock.advance(60 * 60_000);
  // News of each that contradicts nothing: an hour of status updates.
  for (const id of ids) on.cluster.wake(id);
  await settleTasks();
  expect(on.cluster.plan.requests).toEqual([]);
  expect(on.guests.calls.length).toBe(asked);
  expect(on.clock.pending).toBe(0);
  watching.close();
}, 120_000);
