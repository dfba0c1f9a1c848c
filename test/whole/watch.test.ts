import { WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import { StartStep, type WatchWorkspaceResponse } from "@holdfast/api/holdfast/v1/workspace_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Clients, dataFolder, reasonOf, shell, startCluster, startServiceOn, webClientsOf } from "./harness.ts";

type Replica = Awaited<ReturnType<typeof startServiceOn>>;

let folder: Awaited<ReturnType<typeof dataFolder>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
/** Two services on one cluster: what one does is foreign to the other. */
let a: Replica;
let b: Replica;

beforeAll(async () => {
  folder = await dataFolder();
  cluster = await startCluster(folder.path);
  [a, b] = await Promise.all([startServiceOn(cluster.flags), startServiceOn(cluster.flags)]);
}, 60_000);

afterAll(async () => {
  await Promise.all([a?.stop(), b?.stop()]);
  await cluster?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
}, 60_000);

/** A watch that is read as it comes. */
function watch({ workspaces }: Pick<Clients, "workspaces">, workspaceId: string, cursor = "") {
  const leaving = new AbortController();
  const heard: { readonly words: string; readonly cursor: string; readonly atMs: number }[] = [];
  const waiting = new Set<() => void>();
  const ended = (async () => {
    for await (const response of workspaces.watchWorkspace({ workspaceId, cursor }, { signal: leaving.signal })) {
      heard.push({ words: wordsOf(response), cursor: response.cursor, atMs: performance.now() });
      for (const look of waiting) look();
    }
  })();
  ended.catch(() => undefined); // Asked for below, by whoever ends it.
  return {
    ended,
    words: () => heard.map(({ words }) => words),
    /** Resolves with the first event of these words, heard or to come. */
    until: (words: string) =>
      new Promise<(typeof heard)[number]>((resolve, reject) => {
        const look = (): void => {
          const found = heard.find((one) => one.words === words);
          if (!found) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
        ended.then(() => reject(new Error("it ended")), reject);
      }),
    leave: async () => {
      leaving.abort();
      await ended.catch(() => undefined);
    },
  };
}

function wordsOf({ event }: WatchWorkspaceResponse): string {
  switch (event.case) {
    case "snapshot":
    case "changed":
      return `${event.case} ${WorkspaceState[event.value.state]}`;
    case "progress":
      return StartStep[event.value.step] ?? "?";
    case "epochChanged":
      return `epoch ${event.value.previous} → ${event.value.current}`;
    case "gone":
      return event.value.replaced ? "replaced" : "gone";
    default:
      return event.case ?? "nothing";
  }
}

describe("WatchWorkspace on a whole service", () => {
  it("begins before the workspace exists, on both listeners, and hears the open step by step, here and in the other replica", async () => {
    const watchers = [watch(a, "early"), watch(webClientsOf(a), "early"), watch(b, "early")];
    for (const watcher of watchers) await watcher.until("snapshot UNSPECIFIED");
    await a.workspaces.openWorkspace({ workspaceId: "early" });
    for (const watcher of watchers) await watcher.until("changed RUNNING");
    const steps = ["CREATED", "SCHEDULED", "IMAGE_PULLING", "POD_RUNNING", "BOUND", "PROBED"];
    const [here, web, there] = watchers.map((watcher) => watcher.words().filter((words) => steps.includes(words)));
    expect(here).toEqual(expect.arrayContaining(["CREATED", "POD_RUNNING", "BOUND"]));
    expect(web).toEqual(here);
    expect(there).toEqual(expect.arrayContaining(["CREATED", "POD_RUNNING"]));
    for (const words of [here, there]) expect(words).toEqual(steps.filter((step) => words?.includes(step)));
    expect((await b.server.getServerInfo({})).counters?.handles).toBe(0);
    for (const watcher of watchers) await watcher.leave();
  });

  it("L37 hears within a second what another replica does, and so does the handle: a suspend, an epoch, a delete", async () => {
    await a.workspaces.openWorkspace({ workspaceId: "foreign" });
    const watcher = watch(a, "foreign");
    await watcher.until("snapshot RUNNING");
    await b.workspaces.openWorkspace({ workspaceId: "foreign", fencing: { case: "epoch", value: 3n } });
    const openedMs = performance.now();
    const epoch = await watcher.until("epoch 0 → 3");
    expect(epoch.atMs - openedMs).toBeLessThan(1_000);

    await b.inventory.suspendWorkspace({ workspaceId: "foreign", epoch: 3n });
    const suspendedMs = performance.now();
    const suspended = await watcher.until("changed SUSPENDED");
    expect(suspended.atMs - suspendedMs).toBeLessThan(1_000);
    const refused = await reasonOf(shell(a, "foreign", "true"));
    expect(refused).toMatchObject({ reason: "WORKSPACE_SUSPENDED", metadata: { noticed_by: "ADMISSION" } });

    await b.inventory.deleteWorkspace({ workspaceId: "foreign", epoch: 3n });
    const deletedMs = performance.now();
    const gone = await watcher.until("gone");
    expect(gone.atMs - deletedMs).toBeLessThan(1_000);
    await watcher.leave();
  });

  it("resumes after its cursor; one of another process begins with a gap and a snapshot", async () => {
    await a.workspaces.openWorkspace({ workspaceId: "cursor" });
    const first = watch(a, "cursor");
    const { cursor } = await first.until("snapshot RUNNING");
    await a.workspaces.suspendWorkspace({ workspaceId: "cursor" });
    await first.until("changed SUSPENDED");
    const missed = first.words().slice(1);
    await first.leave();

    const second = watch(webClientsOf(a), "cursor", cursor);
    await second.until("changed SUSPENDED");
    expect(second.words()).toEqual(missed);
    await second.leave();
    const other = watch(b, "cursor", cursor);
    await other.until("snapshot SUSPENDED");
    expect(other.words()).toEqual(["gap", "snapshot SUSPENDED"]);
    await other.leave();
    const bad = watch(a, "cursor", "no cursor!");
    expect(await reasonOf(bad.ended)).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  it("B32 L41 hears within 15 s that an agent restarted, though nobody calls the workspace", async () => {
    await a.workspaces.openWorkspace({ workspaceId: "crash" });
    const watcher = watch(a, "crash");
    await watcher.until("snapshot RUNNING");
    // Through the other replica: here nothing fails that could tell of it.
    const killedMs = performance.now();
    await shell(b, "crash", "kill -9 $PPID").catch(() => undefined);
    expect((await watcher.until("containerRestarted")).atMs - killedMs).toBeLessThan(15_000);
    await watcher.leave();
  });

  it("L35 a terminal that is attached here hears that another replica suspended its workspace, not a broken link", async () => {
    const workspaceId = "released";
    await a.workspaces.openWorkspace({ workspaceId });
    // It outlives the hang-up of its terminal, as a shell with a job does: only the pod's end ends it.
    const program = { command: "/bin/sh", args: ["-c", "trap '' HUP TERM; echo up; while :; do sleep 1; done"] };
    await a.sessions.openTerminal({
      workspaceId,
      sessionId: "t",
      program: { ...program, size: { columns: 80, rows: 24 } },
    });
    const up = Promise.withResolvers<void>();
    const reading = (async () => {
      for await (const { event } of a.sessions.attachTerminal({ workspaceId, sessionId: "t" })) {
        if (event.case === "data") up.resolve();
        if (event.case === "exited") throw new Error("no program ended");
      }
    })();
    const ended = reasonOf(reading);
    await up.promise;
    await b.inventory.suspendWorkspace({ workspaceId });
    expect(await ended).toMatchObject({ reason: "WORKSPACE_SUSPENDED", code: "FailedPrecondition" });
  });

  it("counts watchers, and ends with SERVICE_DRAINING at a drain", async () => {
    const third = await startServiceOn(cluster.flags);
    const watchers = [watch(third, "drained"), watch(webClientsOf(third), "drained")];
    for (const watcher of watchers) await watcher.until("snapshot UNSPECIFIED");
    expect((await third.server.getServerInfo({})).counters).toMatchObject({ watchers: 2, streams: 2, handles: 0 });
    third.child.kill("SIGTERM");
    for (const watcher of watchers) {
      expect(await reasonOf(watcher.ended)).toMatchObject({ reason: "SERVICE_DRAINING", code: "Unavailable" });
    }
    expect(await third.stop()).toBe(0);
  });
});
