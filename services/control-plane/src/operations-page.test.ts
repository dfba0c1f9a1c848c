import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  callsMax,
  callsPerConnectionMax,
  clientPingEveryMs,
  clientPingTimeoutMs,
  drainGraceMs,
  drainUnaryMs,
  handlesMax,
  listenDefault,
  receiveConnectionWindowBytes,
  receiveWindowBytes,
  requestMaxBytes,
  violationsNamedMax,
  webListenDefault,
} from "@holdfast/contract";
import { describe, expect, it } from "vitest";
import { settings } from "./config/options.ts";
import { cancelLimits } from "./listeners/cancel-limits.ts";
import { firstBytesMs } from "./listeners/web/first-bytes.ts";

const docs = join(import.meta.dirname, "../../../docs");
const operations = readFileSync(join(docs, "operations.md"), "utf8");
const rpc = readFileSync(join(docs, "design/rpc.md"), "utf8");
const thousands = (count: number) => count.toLocaleString("en-US");
const mib = (bytes: number) => `${bytes / 1024 / 1024} MiB`;

describe("one number, one place: the pages agree with the contract", () => {
  it("operations.md lists every flag and no other", () => {
    const listed = [...operations.matchAll(/^\| `--([a-z-]+)/gm)].map((match) => match[1]);
    expect(listed.sort()).toEqual(settings.map(({ name }) => name as string).sort());
    expect(operations).toContain(`| ${listenDefault} |`);
    expect(operations).toContain(`| ${webListenDefault} |`);
  });

  it("operations.md says the limits as they are", () => {
    expect(operations).toContain(`| a request | ${mib(requestMaxBytes)} | MESSAGE_TOO_LARGE |`);
    expect(operations).toContain(`| calls in progress, per process | ${thousands(callsMax)} | STREAM_CAPACITY |`);
    expect(operations).toContain(`| calls at once, per connection | ${thousands(callsPerConnectionMax)} |`);
    expect(operations).toContain(`| workspaces held, per process | ${thousands(handlesMax)} |`);
    expect(operations).toContain(
      `${mib(receiveWindowBytes)} per call, ${mib(receiveConnectionWindowBytes)} per connection`,
    );
    expect(operations).toContain(
      `pinged every ${clientPingEveryMs / 1000} s, given up ${clientPingTimeoutMs / 1000} s after`,
    );
    expect(operations).toContain(`web listener that says nothing | ${firstBytesMs / 1000} s |`);
    expect(operations).toContain(
      `${thousands(cancelLimits.streamResetBurst)} at once, ${thousands(cancelLimits.streamResetRate)} per second`,
    );
    expect(operations).toContain(`longer than ${drainGraceMs / 1000} s`);
    expect(operations).toContain(`unary calls within ${drainUnaryMs / 1000} s`);
  });

  it("rpc.md says the limits as they are", () => {
    expect(rpc).toContain(`More than ${thousands(callsMax)} calls in progress`);
    expect(rpc).toContain(`One connection carries ${thousands(callsPerConnectionMax)} at once`);
    expect(rpc).toContain(`the first ${violationsNamedMax} by name`);
    expect(rpc).toContain(`unary calls after ${drainUnaryMs / 1000} s`);
    expect(rpc).toContain(`At most ${thousands(handlesMax)} are held`);
    expect(rpc).toContain(
      `${mib(receiveWindowBytes)} per call and ${mib(receiveConnectionWindowBytes)} per connection`,
    );
  });
});
