import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FaultPlan } from "../../faults/fault-plan.ts";
import {
  openTestServer,
  secretObject,
  secretsPath,
  type TestServer,
  withDefaultNamespace,
} from "../testing/test-server.ts";

let faults: FaultPlan;
let test: TestServer;
beforeEach(async () => {
  faults = new FaultPlan();
  test = await withDefaultNamespace(await openTestServer({ faults, servesFaults: true }));
});
afterEach(async () => {
  faults.stop();
  await test.close();
});

const create = (name: string) => test.call("POST", secretsPath, secretObject(name));
const codeOf = async (name: string) => (await test.call("GET", `${secretsPath}/${name}`)).code;
const secrets = { resource: "secrets" };

describe("a request over the network", () => {
  it("is failed with what the rule says, a Retry-After included, and is not carried out", async () => {
    const action = { t: "fail", code: 429, message: "slow down", retryAfterSeconds: 7 } as const;
    faults.add({ match: { ...secrets, verb: "create" }, action, count: 1 });
    const answer = await test.exchange("POST", secretsPath, secretObject("a"));
    expect(answer).toMatchObject({
      code: 429,
      headers: { "retry-after": "7" },
      body: { reason: "TooManyRequests", message: "slow down", details: { retryAfterSeconds: 7 } },
    });
    expect(await codeOf("a")).toBe(404);
    expect((await create("a")).code).toBe(201);
  });

  it("passes while the rule counts past it, and when it is about another name", async () => {
    faults.add({ match: { ...secrets, name: "b" }, action: { t: "fail", code: 500 }, after: 1, count: 1 });
    expect([(await create("a")).code, (await create("b")).code, (await create("b")).code]).toEqual([201, 201, 500]);
    expect(faults.list()).toMatchObject([{ id: "f1", met: 1 }]);
  });

  it.each(["cut", "timeout"] as const)(
    "is dropped unapplied, or applied and its reply lost (%s): the caller cannot tell",
    async (loss) => {
      faults.add({ match: { name: "u" }, action: { t: "dropUnapplied", loss } });
      faults.add({ match: { name: "a", verb: "create" }, action: { t: "applyThenDrop", loss } });
      const told = async (name: string) =>
        create(name).then(
          (answer) => answer.code,
          () => "cut",
        );
      const expected = loss === "cut" ? "cut" : 504;
      expect([await told("u"), await told("a")]).toEqual([expected, expected]);
      faults.clear();
      expect([await codeOf("u"), await codeOf("a")]).toEqual([404, 200]);
    },
  );

  it("gets nothing until its caller gives up, where the reply is lost in silence", async () => {
    faults.add({ match: { name: "a", verb: "create" }, action: { t: "applyThenDrop", loss: "silence" } });
    const record = faults.record();
    const waiting = create("a").then(
      () => "answered",
      () => "cut",
    );
    await expect.poll(() => codeOf("a")).toBe(200);
    const other = new Promise((resolve) => setImmediate(() => resolve("nothing")));
    expect(await Promise.race([waiting, other])).toBe("nothing");
    expect(record.requests.length).toBeGreaterThan(0);
  });

  it("is held at the door until the test decides, and carried out only then", async () => {
    const held = faults.hold({ verb: "create", name: "a" });
    const created = create("a");
    expect(await held.reached).toMatchObject({ by: "client", verb: "create", resource: "secrets", name: "a" });
    expect(await codeOf("a")).toBe(404);
    held.pass();
    expect((await created).code).toBe(201);
    expect(() => held.drop()).toThrow("decided already");
  });

  it("lands late: its reply is lost, and the write is carried out when it is let land", async () => {
    const late = faults.late({ verb: "create", name: "a" });
    await expect(create("a")).rejects.toThrow();
    expect(await codeOf("a")).toBe(404);
    expect(await late.land()).toEqual({ code: 200, message: undefined });
    expect(await codeOf("a")).toBe(200);
  });

  it("that lands late after somebody else's write is refused then, which nobody is told but the test", async () => {
    const late = faults.late({ verb: "create", name: "a" });
    await expect(create("a")).rejects.toThrow();
    await create("a");
    expect(await late.land()).toMatchObject({ code: 409 });
  });
});

describe("a watch over the network", () => {
  it("is cut in the middle, as a broken connection is", async () => {
    const watch = await test.watch(`${secretsPath}?watch=true`);
    await create("a");
    expect(await watch.summaries(1)).toEqual(["ADDED a"]);
    expect(faults.dropWatches({ resource: "secrets" })).toBe(1);
    await expect(watch.next()).rejects.toThrow();
  });

  it("is stalled: open, silent, and whole again afterwards", async () => {
    const watch = await test.watch(`${secretsPath}?watch=true`);
    const stall = faults.stallWatches({ resource: "secrets" });
    await create("a");
    const other = await test.watch("/api/v1/namespaces?watch=true");
    expect(await other.summaries(1)).toEqual(["ADDED default"]);
    await expect.poll(() => faults.list()).toMatchObject([{ met: 1 }]);
    await create("b");
    stall.undo();
    expect(await watch.summaries(2)).toEqual(["ADDED a", "ADDED b"]);
    expect(faults.list()).toEqual([]);
    watch.close();
    other.close();
  });

  it("is refused with 410, as after a compaction", async () => {
    faults.add({
      match: { verb: "watch" },
      action: { t: "fail", code: 410, message: "too old resource version: 1 (9)" },
    });
    expect((await test.call("GET", `${secretsPath}?watch=true&resourceVersion=1`)).body).toMatchObject({
      reason: "Expired",
      code: 410,
    });
  });
});

describe("the knobs over HTTP", () => {
  const path = "/holdfast/faults";

  it("take rules, list them and take them back, one or all", async () => {
    const rule = { match: { resource: "secrets", verb: ["create"] }, action: { t: "fail", code: 503 }, count: 2 };
    expect(await test.call("POST", path, rule)).toMatchObject({ code: 201, body: { id: "f1" } });
    expect((await create("a")).code).toBe(503);
    expect((await test.call("POST", path, { watches: { resource: "secrets" } })).body).toEqual({ id: "f2" });
    expect((await test.call("POST", path, { node: "delayStart", ms: 50 })).body).toEqual({ id: "f3" });
    expect((await test.call("GET", path)).body).toEqual({
      items: [
        { id: "f1", rule, met: 1 },
        { id: "f2", rule: { watches: { resource: "secrets" } }, met: 0 },
        { id: "f3", rule: { node: "delayStart", pods: {}, ms: 50 }, met: 0 },
      ],
    });
    expect((await test.call("DELETE", `${path}/f1`)).body).toEqual({ removed: "f1" });
    expect((await create("a")).code).toBe(201);
    expect((await test.call("DELETE", `${path}/f1`)).code).toBe(404);
    expect((await test.call("DELETE", path)).body).toEqual({ removed: 2 });
    expect((await test.call("GET", path)).body).toEqual({ items: [] });
  });

  it.each([
    [{}, "A fault has one of the members"],
    [{ action: { t: "explode" } }, "action.t is one of"],
    [{ action: { t: "fail", code: 200 } }, "action.code is a number from 400 to 599."],
    [{ action: { t: "delay" } }, "action.ms is missing."],
    [{ action: { t: "hold", forever: true } }, "hold has the members t; found forever."],
    [{ match: { verb: "steal" }, action: { t: "hold" } }, 'match.verb "steal" is none of'],
    [{ match: { by: "cleint" }, action: { t: "hold" } }, 'match.by "cleint" is none of client, controller, node.'],
    [{ watches: { by: "kubelet" } }, 'watches.by "kubelet" is none of'],
    [{ match: {}, watches: {} }, "A rule of watches has the members watches, delayMs; found match."],
    [{ node: "delayStart" }, "ms is missing."],
    [{ evict: {} }, "evict.name is missing."],
  ])("say what they cannot read: %j", async (body, message) => {
    const answer = await test.call("POST", path, body);
    expect(answer.code).toBe(400);
    expect(answer.body.message).toContain(message);
    expect(answer.body.message).toContain("Nothing was changed.");
    expect(faults.list()).toEqual([]);
  });

  it("act on pods by way of the node, and say so where there is no such pod", async () => {
    const done: unknown[] = [];
    faults.node.useNode({
      evict: async (pod, message) => void done.push(["evict", pod, message]),
      killContainer: async (pod, container) => void done.push(["kill", pod, container]),
      cutAddress: async (pod) => {
        done.push(["cut", pod]);
        return async () => void done.push(["mended", pod]);
      },
    });
    const pod = { name: "a" };
    expect((await test.call("POST", path, { evict: pod, message: "full" })).body).toEqual({ done: "evict" });
    expect((await test.call("POST", path, { killContainer: pod })).body).toEqual({ done: "killContainer" });
    const { id } = (await test.call("POST", path, { cutAddress: pod })).body;
    expect((await test.call("GET", path)).body.items).toEqual([
      { id, rule: { node: "cutAddress", pods: pod }, met: 0 },
    ]);
    await test.call("DELETE", `${path}/${id}`);
    expect(done).toEqual([
      ["evict", pod, "full"],
      ["kill", pod, undefined],
      ["cut", pod],
      ["mended", pod],
    ]);
    faults.node.useNode(undefined);
    expect((await test.call("POST", path, { evict: pod })).body.message).toContain("No pod default/a is on this node");
  });

  it("need the token, and are not there unless they were allowed", async () => {
    expect((await test.call("GET", path, undefined, { authorization: "Bearer wrong" })).code).toBe(401);
    const plain = await openTestServer();
    const { code, body } = await plain.call("GET", path);
    await plain.close();
    expect([code, body.message]).toEqual([404, expect.stringContaining("--allow-faults")]);
  });
});
