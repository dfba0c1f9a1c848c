import type { ServerResponse } from "node:http";
import type { SandboxNews, SandboxWatchEnd } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeCluster } from "../kube-cluster.ts";
import { acceleratedClock, clientOf, LogRecord, sandboxJson } from "../testing/fixtures.ts";
import { ScriptedApi, status } from "../testing/scripted-api.ts";

let api: ScriptedApi;
let cluster: KubeCluster;
let log: LogRecord;

beforeEach(async () => {
  log = new LogRecord();
  api = await ScriptedApi.start();
  cluster = await clientOf(api, { log });
});
afterEach(async () => {
  await cluster.close();
  await api[Symbol.asyncDispose]();
});

/** One watch: what it heard, and how it ended. */
function watch(signal = AbortSignal.timeout(10_000)) {
  const heard: SandboxNews[] = [];
  let opened = 0;
  const onOpen = (): void => {
    opened += 1;
  };
  const ended = cluster.watchSandboxes({ from: "40", onOpen, onNews: (news) => void heard.push(news) }, signal);
  return { heard, ended, opened: () => opened };
}

/** Answers the watch with these lines, and ends it unless told otherwise. */
function says(lines: readonly object[], then: (reply: ServerResponse) => void = (reply) => void reply.end()): void {
  api.script((_received, reply) => {
    reply.writeHead(200, { "content-type": "application/json" });
    for (const line of lines) reply.write(`${JSON.stringify(line)}\n`);
    then(reply);
  });
}

const event = (type: string, version: string, metadata: object = {}, spec: object = {}) => ({
  type,
  object: sandboxJson({ metadata: { resourceVersion: version, ...metadata }, spec }),
});

describe("a watch of Sandboxes as objects", () => {
  it("asks for what came after the version, with bookmarks, and nothing else", async () => {
    says([]);
    expect(await watch().ended).toMatchObject({ isFault: false, mustList: false, isExpired: false });
    expect(api.received).toHaveLength(1);
    const { url, method } = api.received[0] ?? { url: new URL("http://none"), method: "" };
    expect([method, url.pathname]).toEqual(["GET", "/apis/agents.x-k8s.io/v1beta1/namespaces/team-a/sandboxes"]);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: "40",
    });
  });

  it("tells what stands, what is new, what is gone, and how far it is, in order", async () => {
    says([
      event("ADDED", "41"),
      event("MODIFIED", "42", {}, { operatingMode: "Suspended" }),
      { type: "BOOKMARK", object: { metadata: { resourceVersion: "50" } } },
      event("DELETED", "51"),
      event("ADDED", "52", { name: "somebody-elses" }),
    ]);
    const { heard, ended, opened } = watch();
    await ended;
    expect(opened()).toBe(1);
    expect(heard).toMatchObject([
      { t: "stands", isNew: true, version: "41", sandbox: { mode: "Running" } },
      { t: "stands", isNew: false, version: "42", sandbox: { mode: "Suspended" } },
      { t: "bookmark", version: "50" },
      { t: "gone", name: "namzu-ws-one", version: "51", last: { template: "standard" } },
      { t: "nothing", version: "52" },
    ]);
  });

  it("says of one that cannot be read any more that it is gone, and warns", async () => {
    says([event("MODIFIED", "41", {}, { operatingMode: "Asleep" })]);
    const { heard, ended } = watch();
    await ended;
    expect(heard).toEqual([{ t: "gone", name: "namzu-ws-one", last: undefined, version: "41" }]);
    expect(log.lines).toEqual([expect.stringContaining("left out of the watch")]);
  });

  it.each<[string, () => void, Partial<SandboxWatchEnd>, number]>([
    [
      "HTTP 410 as expired",
      () => api.script((_received, reply) => status(reply, 410, "Expired")),
      { isExpired: true, mustList: true, isFault: false },
      0,
    ],
    [
      "an ERROR 410 in the stream as expired",
      () => says([{ type: "ERROR", object: { kind: "Status", code: 410, message: "too old" } }]),
      { isExpired: true, mustList: true, isFault: false },
      1,
    ],
    [
      "429 as a fault with its Retry-After",
      () => api.script((_received, reply) => status(reply, 429, "TooMany", { headers: { "retry-after": "3" } })),
      { isExpired: false, mustList: false, isFault: true, retryAfterMs: 3_000 },
      0,
    ],
    [
      "a line that cannot be read as one after which to list",
      () =>
        api.script((_received, reply) => {
          reply.writeHead(200).end("{nonsense\n");
        }),
      { isExpired: false, mustList: true, isFault: true },
      1,
    ],
    [
      "a connection that breaks as a fault, from which to go on",
      () => says([event("ADDED", "41")], (reply) => setImmediate(() => reply.destroy())),
      { isExpired: false, mustList: false, isFault: true },
      1,
    ],
  ])("tells %s", async (_what, script, end, opened) => {
    script();
    const one = watch();
    expect(await one.ended).toMatchObject(end);
    expect(one.opened()).toBe(opened);
  });

  it("ends at once when its signal aborts, and when the client is closed", async () => {
    const gone = new AbortController();
    says([event("ADDED", "41")], () => undefined);
    const aborted = watch(gone.signal);
    const other = watch();
    await api.reached(2);
    gone.abort(new Error("gone"));
    expect(await aborted.ended).toMatchObject({ isFault: true });
    await cluster.close();
    expect(await other.ended).toMatchObject({ isFault: true });
  });

  it("is found when it is silent", async () => {
    await cluster.close();
    cluster = await clientOf(api, { clock: acceleratedClock(200), requestTimeoutMs: 400_000 });
    says([], (reply) => void reply.flushHeaders());
    expect(await watch().ended).toMatchObject({ isFault: true, why: expect.stringContaining("silent") });
  });
});
