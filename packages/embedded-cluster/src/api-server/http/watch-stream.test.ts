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
  const watch = {
    type,
    cursor: api.server.registry.watch(type, undefined, { t: "now" }),
    timeoutMs: 60_000,
    bookmarks: true,
    marksListEnd: false,
    present: (body: string) => body,
  };
  const stopping = new AbortController().signal;
  await streamWatch(watch, { response, onBookmarkTime: () => () => undefined, stopping });
  expect(response.destroyed).toBe(true);
}, 5_000);
