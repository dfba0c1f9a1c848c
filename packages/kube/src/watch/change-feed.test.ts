import type { ServerResponse } from "node:http";
import type { ClusterNews } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeCluster } from "../kube-cluster.ts";
import { acceleratedClock, clientOf, LogRecord, podJson, sandboxJson } from "../testing/fixtures.ts";
import { json, type Received, ScriptedApi, status } from "../testing/scripted-api.ts";

const factor = 50;
const clock = acceleratedClock(factor);

let api: ScriptedApi;
let cluster: KubeCluster;
let log: LogRecord;

beforeEach(async () => {
  log = new LogRecord();
  api = await ScriptedApi.start();
  // Two seconds of the machine's time: only a request that is never answered runs into it.
  cluster = await clientOf(api, { clock, log, requestTimeoutMs: 2_000 * factor });
});

afterEach(async () => {
  await cluster.close();
  await api[Symbol.asyncDispose]();
});

const isWatch = ({ url }: Received): boolean => url.searchParams.get("watch") === "true";
const isPods = ({ url }: Received): boolean => url.pathname.endsWith("/pods");
const kindOf = (received: Received): "pods" | "sandboxes" => (isPods(received) ? "pods" : "sandboxes");

/** The watches that stand, newest last, and a list that is at this version. */
class Watches {
  readonly open: Record<"pods" | "sandboxes", ServerResponse[]> = { pods: [], sandboxes: [] };
  version = "100";
  #waiting: (() => void)[] = [];

  serve(received: Received, reply: ServerResponse): void {
    if (!isWatch(received)) {
      json(reply, 200, { metadata: { resourceVersion: this.version }, items: [] });
      return;
    }
    reply.writeHead(200, { "content-type": "application/json" });
    reply.flushHeaders();
    this.open[kindOf(received)].push(reply);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async stand(count: number): Promise<void> {
    while (this.open.pods.length < count || this.open.sandboxes.length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  say(kind: "pods" | "sandboxes", event: object): void {
    this.open[kind].at(-1)?.write(`${JSON.stringify(event)}\n`);
  }
}

const signal = () => AbortSignal.timeout(10_000);
const sandboxEvent = (type: string, name: string, resourceVersion: string) => ({
  type,
  object: sandboxJson({ metadata: { name, resourceVersion } }),
});

/** True if the subscription has news by the time that a later event of another name was heard. */
async function wakesOnlyFor(name: string, act: (watches: Watches) => void): Promise<boolean> {
  const watches = new Watches();
  api.script((received, reply) => watches.serve(received, reply));
  using mine = cluster.changes(name);
  using lastPod = cluster.changes("namzu-ws-last-pod");
  using lastSandbox = cluster.changes("namzu-ws-last-sandbox");
  await watches.stand(1);
  await Promise.all([mine.next(signal()), lastPod.next(signal()), lastSandbox.next(signal())]); // of the first lists
  act(watches);
  watches.say("pods", {
    type: "ADDED",
    object: podJson({ metadata: { ownerReferences: owner("namzu-ws-last-pod") } }),
  });
  watches.say("sandboxes", sandboxEvent("ADDED", "namzu-ws-last-sandbox", "900"));
  await Promise.all([lastPod.next(signal()), lastSandbox.next(signal())]);
  return await Promise.race([mine.next(signal()).then(() => true), settled().then(() => false)]);
}

const owner = (name: string) => [{ apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", name, uid: "u" }];
const settled = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));

describe("L37 the watch", () => {
  it("starts at the first subscription: one list of one object and one watch per kind, for any number of subscribers", async () => {
    const watches = new Watches();
    api.script((received, reply) => watches.serve(received, reply));
    expect(api.received).toEqual([]);
    const subscriptions = Array.from({ length: 100 }, (_, index) => cluster.changes(`namzu-ws-${index}`));
    await watches.stand(1);
    const asked = api.received.map(
      (received) => [kindOf(received), Object.fromEntries(received.url.searchParams)] as const,
    );
    expect(asked.filter(([kind]) => kind === "sandboxes").map(([, query]) => query)).toEqual([
      { limit: "1" },
      expect.objectContaining({ watch: "true", allowWatchBookmarks: "true", resourceVersion: "100" }),
    ]);
    const labelSelector = "agents.x-k8s.io/sandbox-name-hash";
    expect(asked.filter(([kind]) => kind === "pods").map(([, query]) => query)).toEqual([
      { limit: "1", labelSelector },
      expect.objectContaining({ watch: "true", labelSelector }),
    ]);
    for (const subscription of subscriptions) subscription[Symbol.dispose]();
  });

  it("tells those who hear of all of them, over the same watches; who is disposed of hears no more", async () => {
    const watches = new Watches();
    api.script((received, reply) => watches.serve(received, reply));
    const heard: ClusterNews[] = [];
    const hearing = cluster.hear((news) => heard.push(news));
    using last = cluster.changes("namzu-ws-last");
    await watches.stand(1);
    await last.next(signal()); // of the first lists
    watches.say("sandboxes", sandboxEvent("ADDED", "namzu-ws-a", "101"));
    watches.say("sandboxes", sandboxEvent("ADDED", "somebody-elses", "102"));
    watches.say("sandboxes", sandboxEvent("MODIFIED", "namzu-ws-last", "103"));
    await last.next(signal());
    const told = heard.filter(({ t }) => t !== "missed");
    expect(told).toMatchObject([
      { t: "sandbox", name: "namzu-ws-a", happened: "added" },
      { t: "sandbox", name: "namzu-ws-last", happened: "modified" },
    ]);
    // Each kind's list, of which nobody knows what came before it.
    expect(heard.filter(({ t }) => t === "missed").length).toBeGreaterThan(0);
    hearing[Symbol.dispose]();
    watches.say("sandboxes", sandboxEvent("DELETED", "namzu-ws-last", "104"));
    await last.next(signal());
    expect(heard.filter(({ t }) => t !== "missed")).toEqual(told);
    expect(api.received.filter(isWatch)).toHaveLength(2);
  });

  it("wakes the subscriber of a Sandbox that changed", async () => {
    expect(
      await wakesOnlyFor("namzu-ws-a", (w) => w.say("sandboxes", sandboxEvent("MODIFIED", "namzu-ws-a", "101"))),
    ).toBe(true);
  });

  it("does not wake for another's change", async () => {
    expect(
      await wakesOnlyFor("namzu-ws-a", (w) => w.say("sandboxes", sandboxEvent("MODIFIED", "namzu-ws-b", "101"))),
    ).toBe(false);
  });

  it("B69 wakes for a pod by its owner, whatever the pod's name and whatever happened to it", async () => {
    const gone = podJson({ metadata: { name: "pool-7", ownerReferences: owner("namzu-ws-a") } });
    expect(await wakesOnlyFor("namzu-ws-a", (w) => w.say("pods", { type: "DELETED", object: gone }))).toBe(true);
  });

  it("does not wake for a namesake pod that no Sandbox owns", async () => {
    const stranger = podJson({ metadata: { name: "namzu-ws-a", ownerReferences: [] } });
    expect(await wakesOnlyFor("namzu-ws-a", (w) => w.say("pods", { type: "ADDED", object: stranger }))).toBe(false);
  });

  it("wakes everyone after each list: what was missed is not known", async () => {
    const watches = new Watches();
    api.script((received, reply) => watches.serve(received, reply));
    using mine = cluster.changes("namzu-ws-a");
    await watches.stand(1);
    await mine.next(signal());
    watches.say("sandboxes", { type: "ERROR", object: { kind: "Status", code: 410, message: "too old" } });
    await mine.next(signal());
  });

  it("hears an event that came in pieces, and one behind another", async () => {
    const text = `${JSON.stringify(sandboxEvent("MODIFIED", "namzu-ws-é", "101"))}\n`;
    const bytes = Buffer.from(`${JSON.stringify(sandboxEvent("MODIFIED", "namzu-ws-x", "101"))}\n${text}`);
    const woken = await wakesOnlyFor("namzu-ws-é", (watches) => {
      for (let at = 0; at < bytes.length; at += 7) watches.open.sandboxes[0]?.write(bytes.subarray(at, at + 7));
    });
    expect(woken).toBe(true);
  });
});

describe("a watch that breaks off", () => {
  const resumedAfter = async (act: (watches: Watches) => void): Promise<string | null | undefined> => {
    const watches = new Watches();
    api.script((received, reply) => watches.serve(received, reply));
    using _mine = cluster.changes("namzu-ws-a");
    await watches.stand(1);
    const before = api.received.length;
    act(watches);
    while (watches.open.sandboxes.length < 2) await api.reached(api.received.length + 1);
    const after = api.received.slice(before).filter((received) => kindOf(received) === "sandboxes");
    expect(after.length).toBeLessThanOrEqual(2);
    return after.length === 1 ? after[0]?.url.searchParams.get("resourceVersion") : "listed";
  };

  it("is resumed from the last event that was heard", async () => {
    const version = await resumedAfter((watches) => {
      watches.say("sandboxes", sandboxEvent("MODIFIED", "namzu-ws-b", "105"));
      watches.open.sandboxes[0]?.end();
    });
    expect(version).toBe("105");
  });

  it("is resumed from the last bookmark", async () => {
    const version = await resumedAfter((watches) => {
      watches.say("sandboxes", { type: "BOOKMARK", object: { metadata: { resourceVersion: "300" } } });
      watches.open.sandboxes[0]?.end();
    });
    expect(version).toBe("300");
  });

  it("is resumed after its connection was cut", async () => {
    expect(await resumedAfter((watches) => void watches.open.sandboxes[0]?.destroy())).toBe("100");
  });

  it.each([
    ["B84 a 410 in the stream", '{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}'],
    ["another error in the stream", '{"type":"ERROR","object":{"kind":"Status","code":500}}'],
    ["a line that is no event", "<html>"],
    ["an event without a version", '{"type":"ADDED","object":{}}'],
  ])("lists again after %s", async (_what, line) => {
    expect(await resumedAfter((watches) => void watches.open.sandboxes[0]?.write(`${line}\n`))).toBe("listed");
  });

  it("is found when it is silent, and resumed", async () => {
    const began = clock.monotonicMs();
    expect(await resumedAfter(() => undefined)).toBe("100");
    expect(clock.monotonicMs() - began).toBeGreaterThanOrEqual(90_000);
    expect(log.lines.some((line) => line.includes("silent"))).toBe(true);
  });
});

describe("B84 a server in trouble", () => {
  it("that answers every watch with HTTP 410 is listed again within 5 s, and asked at most twice a second", async () => {
    api.script((received, reply) => {
      if (isWatch(received)) status(reply, 410, "Expired");
      else json(reply, 200, { metadata: { resourceVersion: "7" }, items: [] });
    });
    using _mine = cluster.changes("namzu-ws-a");
    await expectAtMostTwiceASecond(24);
    const lists = api.received.filter((received) => !isWatch(received) && !isPods(received));
    expect(lists.length).toBeGreaterThanOrEqual(4);
  });

  it("that drops every watch is asked at most twice a second, and is followed again when it recovers", async () => {
    const watches = new Watches();
    let drops = 0;
    api.script((received, reply) => {
      if (isWatch(received) && drops < 50) {
        drops += 1;
        received.socket.destroy();
      } else watches.serve(received, reply);
    });
    using mine = cluster.changes("namzu-ws-a");
    await expectAtMostTwiceASecond(50);
    await watches.stand(1);
    await mine.next(signal());
    watches.say("sandboxes", sandboxEvent("MODIFIED", "namzu-ws-a", "200"));
    await mine.next(signal());
    expect(drops).toBe(50);
  });

  it("that answers 429 is left alone for its Retry-After", async () => {
    const times: number[] = [];
    api.script((received, reply) => {
      if (isPods(received)) return void reply.writeHead(200); // never ends: only the other kind is looked at
      times.push(clock.monotonicMs());
      status(reply, 429, "TooManyRequests", { headers: { "retry-after": "20" } });
    });
    using _mine = cluster.changes("namzu-ws-a");
    while (times.length < 3) await api.reached(api.received.length + 1);
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(19_000);
  });

  it("that forbids the watch is said once", async () => {
    api.script((_received, reply) => status(reply, 403, "Forbidden", { message: "may not list" }));
    using _mine = cluster.changes("namzu-ws-a");
    await api.reached(8);
    expect(log.lines.filter((line) => line.includes("may not list"))).toHaveLength(2); // one per kind
  });

  it("is left at once when the client closes, whatever it does", async () => {
    api.script((_received, reply) => void reply.writeHead(200).flushHeaders());
    using _mine = cluster.changes("namzu-ws-a");
    await api.reached(2);
    await cluster.close();
  });

  async function expectAtMostTwiceASecond(requests: number): Promise<void> {
    const began = clock.monotonicMs();
    await api.reached(requests);
    const seconds = (clock.monotonicMs() - began) / 1000;
    expect(requests / seconds).toBeLessThanOrEqual(2.2); // the first four come at once
  }
});
