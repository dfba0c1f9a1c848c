import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { findType } from "../resource-types.ts";
import { openTestServer } from "../testing/test-server.ts";
import { streamWatch } from "./watch-stream.ts";

it("B51 a watch whose caller left before it began ends at once", async () => {
  const api = await openTestServer();
  const http = createServer().listen(0, "127.0.0.1");
  onTestFinished(async () => {
    http.close();
    await api.close();
  });
  await once(http, "listening");
  const { port } = http.address() as AddressInfo;
  const call = request({ host: "127.0.0.1", port });
  call.on("error", () => undefined);
  call.end();
  const [, response]: [unknown, ServerResponse] = (await once(http, "request")) as never;
  call.destroy();
  await once(response, "close");

  const type = findType({ group: "", version: "v1", plural: "secrets" });
  if (type === undefined) throw new Error("secrets are not served");
  await streamWatch({
    type,
    cursor: api.server.registry.watch(type, undefined, { t: "now" }),
    response,
    timeoutMs: 60_000,
    bookmarks: true,
    present: (body) => body,
    onBookmarkTime: () => () => undefined,
    stopping: new AbortController().signal,
  });
  expect(response.destroyed).toBe(true);
}, 5_000);
