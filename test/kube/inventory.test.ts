import { randomUUID } from "node:crypto";
import { systemClock } from "@holdfast/async";
import { type SandboxReading, type WorkspaceNews, WorkspaceWatches } from "@holdfast/workspace";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSuspended, startTestCluster, type TestCluster, within } from "./cluster.ts";

let test: TestCluster;

beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test[Symbol.asyncDispose]());

const log = { info: () => undefined, warn: () => undefined };
const signal = () => AbortSignal.timeout(30_000);

async function deleted(reading: SandboxReading): Promise<void> {
  using limit = within();
  for (let now: SandboxReading | undefined = reading; now; now = await test.cluster.readSandbox(reading.name, limit)) {
    const { name, uid, resourceVersion } = now;
    const ending = await test.cluster.deleteSandbox({ name, uid, resourceVersion }, limit);
    if (ending.t === "applied") return;
  }
}

/** Reads to the next bookmark. */
async function toBookmark(news: AsyncIterator<WorkspaceNews>): Promise<{ words: string[]; version: string }> {
  const words: string[] = [];
  for (;;) {
    const { value } = await news.next();
    if (value.t === "bookmark") return { words, version: value.version };
    words.push(value.t === "restarted" ? value.t : `${value.t} ${value.workspace.id}`);
  }
}

describe("the inventory of an embedded cluster", () => {
  it("lists the templates that it was seeded with", async () => {
    const { templates } = await test.cluster.listTemplates({ limit: 10, continueToken: undefined }, within());
    expect(templates).toMatchObject([{ name: "default", disk: { usable: true } }]);
  });

  it("is watched by one list and one watch, whose bookmarks any process can go on from", async () => {
    const kept = await createSuspended(test.cluster, "kept");
    const going = await createSuspended(test.cluster, "going");
    const watches = new WorkspaceWatches({ cluster: test.cluster, clock: systemClock, log });
    const record = test.faults.record({ by: "client" });
    const news = [1, 2, 3].map(() => watches.watch({}, undefined, signal()));
    const [first] = await Promise.all(news.map(toBookmark));
    expect(first?.words.toSorted()).toEqual(["added going", "added kept"]);
    const collection = record.requests.filter(({ resource, name }) => resource === "sandboxes" && name === "");
    expect(collection.length).toBeLessThanOrEqual(2);
    await Promise.all(news.map((one) => one.return(undefined)));
    await watches.close();

    // Nobody watches now.
    await deleted(going);
    const wish = { mode: "Running" as const, writtenBy: randomUUID(), now: Date.now(), volumeClaimUids: undefined };
    await test.cluster.setMode({ reading: kept, ...wish }, within());

    const other = await test.connect();
    const later = new WorkspaceWatches({ cluster: other, clock: systemClock, log });
    const resumed = later.watch({}, first?.version, signal());
    const heard = new Set<string>();
    while (!(heard.has("removed going") && heard.has("changed kept"))) {
      const { value } = await resumed.next();
      heard.add("workspace" in value ? `${value.t} ${value.workspace.id}` : value.t);
    }
    expect(heard).not.toContain("restarted");
    expect(heard).not.toContain("added kept");
    await resumed.return(undefined);
    await later.close();
    await other.close();
  });
});
