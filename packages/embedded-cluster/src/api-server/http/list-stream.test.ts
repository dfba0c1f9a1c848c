import type { IncomingMessage } from "node:http";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { ListPage } from "../registry/list-page.ts";
import { findType, type ResourceType } from "../resource-types.ts";
import {
  openTestServer,
  secretObject,
  secretsPath,
  type TestServer,
  withDefaultNamespace,
} from "../testing/test-server.ts";
import { streamList } from "./list-stream.ts";

const large = "YWFh".repeat(64 * 1024); // 256 KiB
let test: TestServer;

async function open(options: Parameters<typeof openTestServer>[0] = {}, count = 8): Promise<ResourceType> {
  test = await withDefaultNamespace(await openTestServer(options));
  onTestFinished(() => test.close());
  const type = findType({ group: "", version: "v1", plural: "secrets" }) ?? expect.fail();
  for (let at = 0; at < count; at++)
    test.server.registry.create(type, "default", { ...secretObject(`s${at}`), data: { a: large } });
  return type;
}

/** A list whose caller does not read it yet. */
async function unread(): Promise<IncomingMessage> {
  const message = await test.open("GET", secretsPath, undefined, {});
  message.pause();
  return message;
}

async function textOf(message: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of message) text += chunk;
  return text;
}

it.each([
  ["objects", "application/json", "items"],
  ["a table", "application/json;as=Table;g=meta.k8s.io;v=v1", "rows"],
  ["metadata", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "items"],
])("a large list of %s is what its pages are together", async (_, accept, member) => {
  await open({ now: () => new Date(0) }); // a table shows ages
  const whole = await test.exchange("GET", secretsPath, undefined, { accept });
  expect(whole.headers["content-length"]).toBeUndefined();
  const pages = [];
  let token = "";
  do {
    const path = `${secretsPath}?limit=1&continue=${encodeURIComponent(token)}`;
    const { body, headers } = await test.exchange("GET", path, undefined, { accept });
    expect(headers["content-length"]).toBeDefined();
    pages.push(...body[member]);
    token = body.metadata.continue ?? "";
  } while (token !== "");
  expect(whole.body[member]).toEqual(pages);
  expect(pages).toHaveLength(8);
});

it("a large page says what follows it", async () => {
  await open();
  const { body } = await test.call("GET", `${secretsPath}?limit=5`);
  expect(body.items).toHaveLength(5);
  expect(body.metadata.remainingItemCount).toBe(3);
  const rest = await test.call("GET", `${secretsPath}?limit=5&continue=${encodeURIComponent(body.metadata.continue)}`);
  expect(rest.body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["s5", "s6", "s7"]);
  const selected = await test.call("GET", `${secretsPath}?fieldSelector=metadata.name!%3Ds3`);
  expect(selected.body.items).toHaveLength(7);
});

it("a large list is as it stood when it was asked for, whatever is written while its caller reads", async () => {
  const type = await open({ history: { changes: 4, bytes: 1_000 } }, 60);
  const { registry } = test.server;
  const asked = registry.revision;
  const message = await unread();
  for (let at = 0; at < 60; at++) registry.delete({ type, namespace: "default", name: `s${at}` });
  registry.create(type, "default", secretObject("later"));
  const list = JSON.parse(await textOf(message));
  expect(list.metadata.resourceVersion).toBe(String(asked));
  expect(list.items.map((item: { data: { a: string } }) => item.data.a === large)).toEqual(Array(60).fill(true));
  // What was kept for it goes with the next write.
  registry.create(type, "default", secretObject("last"));
  const cursor = registry.watch(type, undefined, { t: "after", rv: asked });
  onTestFinished(() => cursor.close());
  expect(() => cursor.read(1)).toThrow("too old resource version");
});

it("a compaction by hand cuts a list off: half of one is never taken for a whole", async () => {
  await open({}, 60);
  const message = await unread();
  test.server.registry.create(
    findType({ group: "", version: "v1", plural: "secrets" }) ?? expect.fail(),
    "default",
    secretObject("s"),
  );
  test.server.compact();
  await expect(textOf(message)).rejects.toThrow("aborted");
});

it("no more than 32 large lists are written at once; a further one is 429 with a Retry-After, a small one is served", async () => {
  const type = await open({}, 60);
  const readers = await Promise.all(Array.from({ length: 32 }, unread));
  const refused = await test.exchange("GET", secretsPath);
  expect(refused.code).toBe(429);
  expect(refused.headers["retry-after"]).toBe("1");
  expect(refused.body).toMatchObject({
    reason: "TooManyRequests",
    message: expect.stringContaining("nothing was read"),
  });
  expect((await test.call("GET", `${secretsPath}?limit=1`)).code).toBe(200);
  expect((await test.call("GET", "/api/v1/namespaces")).code).toBe(200);
  // One ends by being read, another by its caller's leaving; both make room.
  expect(JSON.parse(await textOf(readers[0] ?? expect.fail())).items).toHaveLength(60);
  readers[1]?.destroy();
  await expect.poll(async () => (await test.call("GET", secretsPath)).code).toBe(200);
  expect(test.server.registry.get({ type, namespace: "default", name: "s0" }).metadata.name).toBe("s0");
  for (const reader of readers) reader.destroy();
});

/** A page of 200 MiB, which counts what is taken of it. */
function countedPage(): { page: ListPage; taken: () => number } {
  let taken = 0;
  const item = JSON.stringify({ a: "x".repeat(1024 * 1024) });
  function* bodies(): Generator<string> {
    for (; taken < 200; taken++) yield item;
  }
  const head = { resourceVersion: 1, continue: undefined, remaining: undefined };
  return { page: { ...head, keys: [], small: undefined, bodies, pin: () => () => undefined }, taken: () => taken };
}

async function served(limitMs?: number) {
  const { page, taken } = countedPage();
  const ended = Promise.withResolvers<void>();
  const server = createServer((_, response) => {
    const body = { head: '{"items":[', item: (text: string) => text, tail: "]}" };
    streamList({ page, body }, response, limitMs).then(ended.resolve, ended.reject);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const message = await new Promise<IncomingMessage>((resolve) =>
    get({ port, host: "127.0.0.1", agent: false }, resolve),
  );
  message.pause();
  return { message, taken, ended: ended.promise };
}

it("a list is read from the store only as fast as its caller takes it", async () => {
  const { message, taken, ended } = await served();
  // What the kernel's buffers hold is taken while nobody reads, and then no more.
  const seen: number[] = [];
  await expect
    .poll(() => {
      seen.push(taken());
      return seen.length > 5 && new Set(seen.slice(-5)).size === 1;
    })
    .toBe(true);
  expect(taken()).toBeLessThan(50);
  let length = 0;
  message.on("data", (chunk: Buffer) => {
    length += chunk.length;
  });
  message.resume();
  await ended;
  expect(taken()).toBe(200);
  await expect.poll(() => message.readableEnded).toBe(true);
  expect(length).toBeGreaterThan(200 * 1024 * 1024);
});

it("a list that its caller does not read in time is cut off", async () => {
  const { message, taken, ended } = await served(50);
  await ended;
  expect(taken()).toBeLessThan(50);
  await expect(textOf(message)).rejects.toThrow("aborted");
});
