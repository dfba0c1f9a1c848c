import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openTestServer,
  podObject,
  podsPath,
  sandboxesPath,
  sandboxObject,
  secretObject,
  secretsPath,
  type TestServer,
  type WatchReader,
  withDefaultNamespace,
} from "../testing/test-server.ts";

const mergePatch = { "content-type": "application/merge-patch+json" };

let test: TestServer;
beforeEach(async () => {
  test = await withDefaultNamespace(await openTestServer({ bookmarkIntervalMs: 20 }));
});
afterEach(() => test.close());

const createSecret = async (name: string, metadata: object = {}): Promise<string> =>
  (await test.call("POST", secretsPath, secretObject(name, metadata))).body.metadata.resourceVersion;
const label = (name: string, labels: object) =>
  test.call("PATCH", `${secretsPath}/${name}`, { metadata: { labels } }, mergePatch);
const remove = (name: string) => test.call("DELETE", `${secretsPath}/${name}`);

async function reading<T>(path: string, read: (watch: WatchReader) => Promise<T>): Promise<T> {
  const watch = await test.watch(path);
  try {
    return await read(watch);
  } finally {
    watch.close();
  }
}

describe("a watch", () => {
  it("from a version gives every later change once, in order", async () => {
    const rv = await createSecret("a");
    await createSecret("b");
    await label("a", { x: "1" });
    const seen = await reading(`${secretsPath}?watch=true&resourceVersion=${rv}`, async (watch) => {
      const replayed = await watch.summaries(2);
      await remove("b");
      await createSecret("c");
      return [...replayed, ...(await watch.summaries(2))];
    });
    expect(seen).toEqual(["ADDED b", "MODIFIED a", "DELETED b", "ADDED c"]);
  });

  it.each(["", "&resourceVersion=0"])("without a version (%j) begins with what is there", async (version) => {
    await createSecret("a");
    await createSecret("b");
    const seen = await reading(`${secretsPath}?watch=1${version}`, async (watch) => {
      const listed = await watch.summaries(2);
      await label("a", { x: "1" });
      return [...listed, ...(await watch.summaries(1))];
    });
    expect(seen).toEqual(["ADDED a", "ADDED b", "MODIFIED a"]);
  });

  it("resumes from the version of any event without a gap or a repeat", async () => {
    const path = `${secretsPath}?watch=true`;
    let rv = await createSecret("start");
    const seen: string[] = [];
    for (let round = 0; round < 5; round++) {
      const event = await reading(`${path}&resourceVersion=${rv}`, async (watch) => {
        await createSecret(`n${round}`);
        await createSecret(`m${round}`);
        return watch.next();
      });
      seen.push(event.object.metadata.name);
      rv = event.object.metadata.resourceVersion;
    }
    expect(seen).toEqual(["n0", "m0", "n1", "m1", "n2"]);
  });

  it("gives a deletion the version that a list after it has", async () => {
    const rv = await createSecret("a");
    await remove("a");
    const { body: list } = await test.call("GET", secretsPath);
    const event = await reading(`${secretsPath}?watch=true&resourceVersion=${rv}`, (watch) => watch.next());
    expect(event).toMatchObject({ type: "DELETED", object: { kind: "Secret", metadata: { name: "a" } } });
    expect(event.object.metadata.resourceVersion).toBe(list.metadata.resourceVersion);
  });

  it("by label says ADDED for what enters the selection and DELETED for what leaves it", async () => {
    const rv = await createSecret("a", { labels: { x: "0" } });
    await label("a", { x: "1" });
    await label("a", { x: "1", y: "2" });
    await label("a", { x: "2" });
    await label("a", { x: "1" });
    await remove("a");
    const path = `${secretsPath}?watch=true&labelSelector=${encodeURIComponent("x in (1)")}&resourceVersion=${rv}`;
    const events = await reading(path, async (watch) => {
      const all = [];
      for (let i = 0; i < 5; i++) all.push(await watch.next());
      return all;
    });
    expect(events.map((event) => event.type)).toEqual(["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]);
    // What left is given as it was when it last matched, at the version at which it left.
    expect(events[2].object.metadata.labels).toEqual({ x: "1", y: "2" });
    expect(Number(events[2].object.metadata.resourceVersion)).toBeGreaterThan(
      Number(events[1].object.metadata.resourceVersion),
    );
  });

  it("by field follows one object, or the pods of one node", async () => {
    await test.call("POST", podsPath, podObject("p"));
    await test.call("POST", podsPath, podObject("q"));
    const { body: list } = await test.call("GET", podsPath);
    const rv = list.metadata.resourceVersion;
    const bind = (name: string) =>
      test.call("POST", `${podsPath}/${name}/binding`, { metadata: { name }, target: { name: "n" } });
    await bind("q");
    await bind("p");
    const summaries = (query: string, count: number) =>
      reading(`${podsPath}?watch=true&resourceVersion=${rv}&${query}`, (watch) => watch.summaries(count));
    expect(await summaries("fieldSelector=metadata.name%3Dp", 1)).toEqual(["MODIFIED p"]);
    expect(await summaries("fieldSelector=spec.nodeName%3Dn", 2)).toEqual(["ADDED q", "ADDED p"]);
    // One object has no watch of its own.
    expect((await test.call("GET", `${podsPath}/p?watch=true`)).body.kind).toBe("Pod");
    expect(await test.call("GET", `${sandboxesPath}?watch=true&fieldSelector=spec.nodeName%3Dn`)).toMatchObject({
      code: 400,
      body: { message: expect.stringContaining("field label not supported: spec.nodeName") },
    });
  });

  it("of all namespaces sees each; of one, its own", async () => {
    await test.call("POST", "/api/v1/namespaces", { metadata: { name: "other" } });
    const rv = await createSecret("a");
    await test.call("POST", "/api/v1/namespaces/other/secrets", secretObject("elsewhere"));
    await createSecret("b");
    const all = `/api/v1/secrets?watch=true&resourceVersion=${rv}`;
    expect(await reading(all, (watch) => watch.summaries(2))).toEqual(["ADDED elsewhere", "ADDED b"]);
    const one = `${secretsPath}?watch=true&resourceVersion=${rv}`;
    expect(await reading(one, (watch) => watch.summaries(1))).toEqual(["ADDED b"]);
  });

  it("is given bookmarks that move on with other types' changes", async () => {
    const rv = await createSecret("a");
    await reading(`${secretsPath}?watch=true&allowWatchBookmarks=true&resourceVersion=${rv}`, async (watch) => {
      const { body: sandbox } = await test.call("POST", sandboxesPath, sandboxObject("s"));
      let event = await watch.next();
      while (event.object.metadata.resourceVersion !== sandbox.metadata.resourceVersion) event = await watch.next();
      expect(event).toMatchObject({ type: "BOOKMARK", object: { kind: "Secret", apiVersion: "v1" } });
    });
  });

  it("is given no bookmarks unless it asked for them", async () => {
    const rv = await createSecret("a");
    const path = `${secretsPath}?watch=true&resourceVersion=${rv}`;
    await reading(path, (watch) =>
      reading(`${path}&allowWatchBookmarks=true`, async (asked) => {
        for (let times = 0; times < 3; times += 1) expect((await asked.next()).type).toBe("BOOKMARK");
        await createSecret("b");
        expect(await watch.summaries(1)).toEqual(["ADDED b"]);
      }),
    );
  });

  it("ends by itself after timeoutSeconds", async () => {
    await createSecret("a");
    const seen = await reading(`${secretsPath}?watch=true&timeoutSeconds=1`, (watch) => watch.summaries(9));
    expect(seen).toEqual(["ADDED a"]);
  });
});

describe("after compaction", () => {
  it("a watch from before gets 410 in its stream, and a page 410 as its status", async () => {
    const rv = await createSecret("a");
    await createSecret("b");
    const { body: page } = await test.call("GET", `${secretsPath}?limit=1`);
    await createSecret("c");
    test.server.compact();
    const events = await reading(`${secretsPath}?watch=true&resourceVersion=${rv}`, async (watch) => [
      watch.message.statusCode,
      await watch.next(),
      await watch.next(),
    ]);
    expect(events).toEqual([
      200,
      {
        type: "ERROR",
        object: {
          kind: "Status",
          apiVersion: "v1",
          metadata: {},
          status: "Failure",
          message: expect.stringMatching(/^too old resource version: \d+ \(\d+\)$/),
          reason: "Expired",
          code: 410,
        },
      },
      undefined,
    ]);
    expect(await test.call("GET", `${secretsPath}?limit=1&continue=${page.metadata.continue}`)).toMatchObject({
      code: 410,
      body: { reason: "Expired" },
    });
  });

  it("a watch that was idle meanwhile goes on: nothing of its type was lost", async () => {
    const rv = await createSecret("a");
    await reading(`${secretsPath}?watch=true&resourceVersion=${rv}&allowWatchBookmarks=true`, async (watch) => {
      expect((await watch.next()).type).toBe("BOOKMARK");
      for (let i = 0; i < 5; i++) await test.call("POST", sandboxesPath, sandboxObject(`s${i}`));
      test.server.compact();
      await createSecret("b");
      let event = await watch.next();
      while (event.type === "BOOKMARK") event = await watch.next();
      expect(event).toMatchObject({ type: "ADDED", object: { metadata: { name: "b" } } });
    });
  });

  it("a version that this server has not reached is refused, not waited for", async () => {
    expect(await test.call("GET", `${secretsPath}?watch=true&resourceVersion=999999`)).toMatchObject({
      code: 504,
      body: {
        message: expect.stringContaining("Too large resource version"),
        details: { causes: [{ reason: "ResourceVersionTooLarge" }] },
      },
    });
  });
});

describe("a caller that does not read its watch", () => {
  it("is not queued for: its stream ends with 410 once the log has moved on", async () => {
    await test.close();
    test = await withDefaultNamespace(await openTestServer({ history: { changes: 8, bytes: 1e9 } }));
    const rv = await createSecret("a");
    const watch = await test.watch(`${secretsPath}?watch=true&resourceVersion=${rv}`);
    watch.message.pause();
    // More than any socket buffers take: the server has to wait for the caller, and the log goes on without it.
    const large = { ...secretObject("large"), data: { x: "a".repeat(1_000_000) } };
    await test.call("POST", secretsPath, large);
    for (let i = 0; i < 30; i++) {
      await test.call("PATCH", `${secretsPath}/large`, { metadata: { labels: { i: String(i) } } }, mergePatch);
    }
    watch.message.resume();
    const seen = await watch.summaries(200);
    expect(seen.at(-1)).toBe("ERROR Expired");
    expect(seen.length).toBeLessThan(30);
    expect(await watch.next()).toBeUndefined();
  });
});

describe("a stopping server", () => {
  it("ends its watches", async () => {
    const rv = await createSecret("a");
    const watch = await test.watch(`${secretsPath}?watch=true&resourceVersion=${rv}`);
    const [end] = await Promise.all([watch.next(), test.server.stop()]);
    expect(end).toBeUndefined();
    test = await withDefaultNamespace(await openTestServer());
  });
});
