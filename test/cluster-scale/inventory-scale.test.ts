import { readFile, writeFile } from "node:fs/promises";
import { OperatingMode } from "@holdfast/api/holdfast/v1/inventory_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually, startServiceOn } from "../whole/harness.ts";
import { ManySandboxes, rawList } from "./many-sandboxes.ts";

const count = 10_000;
const pageSize = 1_000;

let many: ManySandboxes;
let service: Awaited<ReturnType<typeof startServiceOn>>;

beforeAll(async () => {
  many = await ManySandboxes.start(count);
  const flags = ["--cluster", "kubernetes", "--kubeconfig", many.kubeconfigPath, "--disk", "filesystem"];
  service = await startServiceOn(flags);
});
afterAll(async () => {
  await service.stop();
  await many[Symbol.asyncDispose]();
});

/** Reads every page; returns how many workspaces they held. */
async function listAll(filter: object = {}, size = pageSize): Promise<number> {
  let found = 0;
  let pageToken = "";
  do {
    const page = await service.inventory.listWorkspaces({ ...filter, pageSize: size, pageToken });
    found += page.workspaces.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return found;
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;

/** Of the service's process, in MiB: now, and the most since the peak was last reset. */
async function memory(): Promise<{ now: number; peak: number }> {
  const text = await readFile(`/proc/${service.child.pid}/status`, "utf8");
  const of = (key: string): number => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(text)?.[1]) / 1024;
  return { now: of("VmRSS"), peak: of("VmHWM") };
}
const resetPeak = () => writeFile(`/proc/${service.child.pid}/clear_refs`, "5");

const say = (line: string): void => void process.stdout.write(`${line}\n`);

describe(`${count} workspaces`, () => {
  it("are held one page at a time", async () => {
    await listAll({ workspaceIdPrefix: "none" }, 100); // What is loaded at a first use is not what lists hold.
    await resetPeak();
    const before = await memory();
    const lists = 6;
    for (let round = 0; round < lists; round += 1) await listAll({}, 100);
    const grownMiB = (await memory()).peak - before.now;
    const readMiB = (lists * count * many.objectBytes) / 2 ** 20;
    say(
      `${lists} lists of ${readMiB.toFixed(0)} MiB in all, in pages of 100: ${before.now.toFixed(0)} MiB before, ${grownMiB.toFixed(0)} MiB more at most`,
    );
    // Parsed objects take several times their text: whoever kept them would need far more than what was read.
    expect(grownMiB).toBeLessThan(readMiB);
  });

  it("are listed with the cluster's own pages and no other request, in little more time than those take", async () => {
    many.requests.length = 0;
    expect(await listAll()).toBe(count);
    expect(many.requests).toHaveLength(count / pageSize);
    expect(many.requests.every((request) => request.includes(`/sandboxes?limit=${pageSize}`))).toBe(true);

    const raw: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      raw.push(await timed(() => rawList(many.url, pageSize)));
      ours.push(await timed(() => listAll()));
    }
    const ratio = median(ours.map((ms, round) => ms / (raw[round] ?? ms)));
    say(
      `${count} objects of ${many.objectBytes} bytes: raw LIST ${median(raw).toFixed(0)} ms, ListWorkspaces ${median(ours).toFixed(0)} ms, ratio ${ratio.toFixed(2)}`,
    );
    // The target is 1.5; machines that also run something else are given more.
    expect(ratio).toBeLessThan(3);
  });

  it("are filtered page by page, whatever the filter leaves of each", async () => {
    many.requests.length = 0;
    const changedBefore = { seconds: 4_000_000_000n, nanos: 0 };
    const filter = { mode: OperatingMode.SUSPENDED, template: "even", modeChangedBefore: changedBefore };
    expect(await listAll(filter)).toBe(count / 4);
    expect(await listAll({ workspaceIdPrefix: "w-00012" })).toBe(10);
    expect(many.requests).toHaveLength(2 * (count / pageSize));
  });

  it("are watched by any number of watchers over one list and one watch", async () => {
    many.requests.length = 0;
    const ownWatches = many.watches; // The process's own, for the handles that are open here.
    const before = await memory();
    const watchers = 5;
    const gone = new AbortController();
    const heard = Array.from({ length: watchers }, () => ({ added: 0, changed: 0, isReady: false }));
    const startedAt = performance.now();
    const reading = heard.map(async (one) => {
      for await (const { event } of service.inventory.watchWorkspaces({}, { signal: gone.signal })) {
        if (event.case === "added") one.added += 1;
        else if (event.case === "changed") one.changed += 1;
        else if (event.case === "bookmark") one.isReady = true;
        else throw new Error(`${event.case} was not to be heard`);
      }
    });
    const ended = Promise.allSettled(reading);
    await eventually(30_000, async () => (heard.every(({ isReady }) => isReady) ? true : undefined));
    const readyMs = performance.now() - startedAt;
    expect(heard.map(({ added }) => added)).toEqual(heard.map(() => count));

    const changes = 500;
    const changedAt = performance.now();
    for (let index = 0; index < changes; index += 1) many.change(index * 4 + 1, true);
    await eventually(10_000, async () => (heard.every(({ changed }) => changed === changes) ? true : undefined));
    const changedMs = performance.now() - changedAt;
    const after = await memory();
    const watches = many.requests.filter((request) => request.includes("watch=true"));
    expect([watches.length, many.requests.length - watches.length, many.watches - ownWatches]).toEqual([
      1,
      count / 500,
      1,
    ]);
    say(
      `${watchers} watchers: everything after ${readyMs.toFixed(0)} ms, ${changes} changes to each in ${changedMs.toFixed(0)} ms; ${before.now.toFixed(0)} MiB before, ${after.now.toFixed(0)} MiB with them`,
    );
    gone.abort();
    await ended;
  });
});
