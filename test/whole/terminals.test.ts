import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionService } from "@holdfast/api/holdfast/v1/session_pb";
import { describe, expect, it } from "vitest";
import { BrowserTerminal } from "../rpc/browser-terminal.ts";
import { dataFolder, startCluster, startService, startServiceOn, webTargetOf } from "./harness.ts";

const root = dirname(dirname(import.meta.dirname));
const bytes = 60_000;
/** Reads so much, unchanged, while it counts; then tells what it has read. */
const program = `stty raw -echo; (i=0; while :; do i=$((i+1)); echo "$i"; sleep 0.005; done) & c=$!
  head -c ${bytes} > in; kill $c; wait $c 2>/dev/null; sleep 0.05; sha256sum < in`;

describe("a terminal of a web backend, in a real pod", () => {
  it("B27 B47 survives the browser's reload, the service's SIGKILL and SIGTERM, and moves: every byte once, either way", async () => {
    await using folder = await dataFolder();
    await using cluster = await startCluster(folder.path);
    let service = await startServiceOn(cluster.flags);
    await service.workspaces.openWorkspace({ workspaceId: "w" });
    const clientNow = () => createClient(SessionService, webTransport(service));
    let client = clientNow();
    const ids = { workspaceId: "w", sessionId: "t" };
    await client.openTerminal({ ...ids, program: { command: "sh", args: ["-c", program] } });
    const typed = Array.from({ length: 30 }, () => randomBytes(bytes / 30));
    let terminal = new BrowserTerminal(() => client, ids);
    const shown: Uint8Array[] = terminal.pieces;
    for (const [at, data] of typed.entries()) {
      const writing = terminal.type(data);
      if (at === 5 || at === 20) {
        await writing;
        const kept = await terminal.reload();
        terminal = new BrowserTerminal(() => client, ids, kept);
        const { pieces } = terminal;
        terminal.pieces.push = (...more) => {
          shown.push(...more);
          return pieces.length;
        };
      }
      if (at === 10 || at === 15) {
        // The one is killed, the other drains; what takes their place knows nothing but the cluster.
        const former = service;
        service = await startServiceOn(cluster.flags);
        if (at === 10) await former.kill();
        else expect(await former.stop()).toBe(0);
        client = clientNow();
      }
      await writing;
    }
    expect(await terminal.over).toMatchObject({ status: { case: "exitCode", value: 0 } });
    expect(terminal.missing).toBe(0n);
    const lines = Buffer.concat(shown)
      .toString("latin1")
      .split("\n")
      .map((line) => line.trim());
    const hash = createHash("sha256").update(Buffer.concat(typed)).digest("hex");
    expect(lines).toContain(`${hash}  -`);
    const counted = lines.filter((line) => /^\d+$/.test(line)).map(Number);
    expect(counted).toEqual(Array.from({ length: counted.length }, (_, at) => at + 1));
    await service.stop();
  }, 180_000);
});

describe("docs/clients.md", () => {
  it("has a terminal that runs as it is written", async () => {
    const page = readFileSync(join(root, "docs/clients.md"), "utf8");
    const block = /run by test\/whole\/terminals.test.ts -->\n```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    await service.workspaces.openWorkspace({ workspaceId: "hello" });
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-"], {
      cwd: join(root, "test"),
      stdio: ["pipe", "pipe", "inherit"],
    });
    child.stdin.end(block.replaceAll("127.0.0.1:8080", webTargetOf(service)));
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    expect(said).toMatch(/hello page\r\nexited with 0\n$/);
    expect(code).toBe(0);
  });
});

function webTransport(service: Parameters<typeof webTargetOf>[0]) {
  return createConnectTransport({
    baseUrl: `http://${webTargetOf(service)}`,
    httpVersion: "1.1",
    useBinaryFormat: false,
  });
}
