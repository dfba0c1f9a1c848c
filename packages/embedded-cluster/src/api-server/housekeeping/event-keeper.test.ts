import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import type { KubeObject } from "../../resource-api.ts";
import { findType } from "../resource-types.ts";
import { openTestServer, type TestServer, withDefaultNamespace } from "../testing/test-server.ts";
import { EventKeeper } from "./event-keeper.ts";

const events = findType({ group: "", version: "v1", plural: "events" }) ?? expect.fail();

async function open(options: Parameters<typeof openTestServer>[0]): Promise<TestServer> {
  return withDefaultNamespace(await openTestServer(options));
}

function event(name: string, message = ""): KubeObject {
  const involvedObject = { kind: "Pod", namespace: "default", name: "p" };
  return { apiVersion: "v1", kind: "Event", metadata: { name }, involvedObject, reason: "Tested", message };
}

function write(test: TestServer, names: readonly string[], message?: string): void {
  for (const name of names) test.server.registry.create(events, "default", event(name, message));
}

function kept(test: TestServer): string[] {
  return test.server.registry.list(events, undefined).keys.map(({ name }) => name);
}

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `e${String(from + at).padStart(5, "0")}`);

it("as many events as may be are kept; with one more, the oldest goes, and it alone", async () => {
  const test = await open({ eventsMax: 20 });
  onTestFinished(() => test.close());
  const gone = await test.watch("/api/v1/events?watch=true&resourceVersion=1");
  write(test, numbered(0, 19));
  expect(await gone.summaries(19)).toEqual(numbered(0, 19).map((name) => `ADDED ${name}`));
  write(test, numbered(19, 20));
  expect(await gone.summaries(1)).toEqual(["ADDED e00019"]);
  write(test, numbered(20, 21));
  expect(await gone.summaries(2)).toEqual(["ADDED e00020", "DELETED e00000"]);
  expect(kept(test)).toEqual(numbered(1, 21));
  gone.close();
});

it("an event that is told again is as new as the last telling", async () => {
  const test = await open({ eventsMax: 3 });
  onTestFinished(() => test.close());
  write(test, numbered(0, 3));
  const target = { type: events, namespace: "default", name: "e00000" };
  test.server.registry.patch(target, "application/merge-patch+json", { count: 2 });
  write(test, numbered(3, 5));
  await expect.poll(() => kept(test)).toEqual(["e00000", "e00003", "e00004"]);
});

it("events that are too many at a start go then, the oldest first", async () => {
  const first = await open({ eventsMax: 30 });
  write(first, numbered(0, 30));
  const target = { type: events, namespace: "default", name: "e00004" };
  first.server.registry.patch(target, "application/merge-patch+json", { count: 2 });
  await first.server.stop();
  const second = await openTestServer({ dataDir: first.dataDir, eventsMax: 10 });
  onTestFinished(() => second.close());
  await expect.poll(() => kept(second)).toEqual(["e00004", ...numbered(21, 30)]);
});

it("however many are to go, a few go before requests have their turn", async () => {
  const test = await open({});
  onTestFinished(() => test.close());
  write(test, numbered(0, 30));
  const { registry } = test.server;
  new EventKeeper(registry, 10).trim();
  expect(kept(test)).toEqual(numbered(4, 30));
  const later = new Date(Date.now() + 3_700_000);
  expect(new EventKeeper(registry, 100).expire(later)).toBe(true);
  expect(kept(test)).toEqual(numbered(8, 30));
  expect(new EventKeeper(registry, 100).expire(new Date())).toBe(false);
  expect(kept(test)).toEqual(numbered(8, 30));
});

it("an event that somebody holds by a finalizer is deleted once, and nothing else goes in its place", async () => {
  const test = await open({ eventsMax: 100 });
  onTestFinished(() => test.close());
  const { registry } = test.server;
  for (const name of numbered(0, 5)) {
    const held = event(name);
    registry.create(events, "default", { ...held, metadata: { ...held.metadata, finalizers: ["holdfast.dev/mine"] } });
  }
  write(test, numbered(5, 7));
  const keeper = new EventKeeper(registry, 2);
  onTestFinished(registry.onChange(({ body, type }) => keeper.noticed(JSON.parse(body), type === "DELETED")));
  for (let turn = 0; turn < 5; turn += 1) keeper.trim();
  expect(kept(test)).toEqual(numbered(0, 7));
  const marked = numbered(0, 7).filter(
    (name) => registry.get({ type: events, namespace: "default", name }).metadata.deletionTimestamp !== undefined,
  );
  expect(marked).toEqual(numbered(0, 5));
  expect(keeper.expire(new Date())).toBe(false);
});

it("all that are older than an hour go with the next sweep", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  let hours = 0;
  const test = await open({ now: () => new Date(hours * 3_600_000) });
  onTestFinished(() => test.close());
  write(test, numbered(0, 30));
  hours = 1.5;
  write(test, ["young"]);
  vi.advanceTimersByTime(300_000);
  await expect.poll(() => kept(test)).toEqual(["young"]);
});

const fileBytes = (test: TestServer): number =>
  ["objects.sqlite", "objects.sqlite-wal"]
    .map((name) => statSync(join(test.dataDir, "api-server", name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);

it("the store's file does not grow with the events that were ever written", async () => {
  const test = await open({ eventsMax: 50, history: { changes: 100, bytes: 1e6 } });
  onTestFinished(() => test.close());
  const message = "m".repeat(10_000);
  const round = async (from: number): Promise<void> => {
    for (let at = from; at < from + 300; at += 50) {
      write(test, numbered(at, at + 50), message);
      await expect.poll(() => kept(test).length, { interval: 5 }).toBe(50);
    }
  };
  await round(0);
  const before = fileBytes(test);
  await round(300);
  await round(600);
  // Nine hundred events and as many deletions are some 27 MB of log and objects.
  expect(fileBytes(test)).toBeLessThan(before * 1.25);
  expect(before).toBeLessThan(9e6);
});

it("a file that is mostly free is made smaller at a start, with all that it holds", async () => {
  const first = await open({ history: { changes: 10, bytes: 1e6 } });
  const message = "m".repeat(1_000_000);
  write(first, numbered(0, 40), message);
  write(first, ["stays"]);
  for (const name of numbered(0, 40)) first.server.registry.delete({ type: events, namespace: "default", name });
  const revision = first.server.registry.revision;
  await first.server.stop();
  const large = fileBytes(first);
  const second = await openTestServer({ dataDir: first.dataDir });
  onTestFinished(() => second.close());
  expect(large).toBeGreaterThan(30e6);
  expect(fileBytes(second)).toBeLessThan(10e6);
  expect(kept(second)).toEqual(["stays"]);
  expect(second.server.registry.revision).toBe(revision);
});
