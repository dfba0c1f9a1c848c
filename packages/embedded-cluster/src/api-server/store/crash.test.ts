import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startApiServer } from "../api-server.ts";
import { silent } from "../testing/test-server.ts";
import { DataDirInUseError } from "./data-dir-lock.ts";

const secrets = { group: "", version: "v1", plural: "secrets" };

let dataDir: string;
let writer: ChildProcess | undefined;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "holdfast-crash-"));
});
afterEach(async () => {
  await end();
  await rm(dataDir, { recursive: true, force: true });
});

/** Starts a process that writes, and resolves when it has been told of at least `count` more writes. */
async function startWriter(count: number): Promise<{ reported: () => number }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../testing/writer.ts"), dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  writer = child;
  let last = 0;
  let lines = 0;
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the writer ended with ${code}`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      last = Number(line);
      if (++lines === count) resolve();
    });
  });
  return { reported: () => last };
}

async function end(): Promise<void> {
  if (writer === undefined || writer.exitCode !== null || writer.signalCode !== null) return;
  const ended = once(writer, "exit");
  writer.kill("SIGKILL");
  await ended;
}

describe("a store whose process was killed in the middle of writing", () => {
  it("opens again in a state that was once true, with all that had been answered", async () => {
    for (const count of [5, 37, 120]) {
      const { reported } = await startWriter(count);
      await end();
      const server = await startApiServer({ dataDir, port: 0, log: silent });
      try {
        const { items, resourceVersion } = await server.api.list(secrets, "default");
        const counts = Object.fromEntries(items.map(({ metadata }) => [metadata.name, Number(metadata.labels?.count)]));
        const [first = 0, second = 0] = [counts.first, counts.second];
        expect(second).toBeGreaterThanOrEqual(reported());
        expect([second, second + 1]).toContain(first);
        // The log agrees with the objects: a watch from the oldest change that is left ends at what stands there.
        const versions = items.map((item) => Number(item.metadata.resourceVersion));
        expect(Number(resourceVersion)).toBeGreaterThanOrEqual(Math.max(...versions));
        const before = String(Math.min(...versions) - 1);
        const seen = await take(server.api.watch(secrets, before, AbortSignal.timeout(5_000)), items.length);
        expect(seen.map((event) => event.object)).toEqual(
          items.toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion)),
        );
      } finally {
        await server.stop();
      }
    }
  });
});

async function take<T>(events: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const event of events) {
    taken.push(event);
    if (taken.length === count) break;
  }
  return taken;
}

describe("a data directory that a process holds", () => {
  it("is refused to another by name, with the holder's pid, and changes nothing", async () => {
    await startWriter(1);
    const refusal = await startApiServer({ dataDir, port: 0, log: silent }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(DataDirInUseError);
    expect(refusal).toMatchObject({
      name: "DataDirInUseError",
      pid: writer?.pid,
      message: `The data directory ${dataDir} is in use by process ${writer?.pid}. Nothing was changed. Stop it, or choose another directory.`,
    });
  });

  it("is refused to the same process too, and free again after a stop", async () => {
    const first = await startApiServer({ dataDir, port: 0, log: silent });
    await expect(startApiServer({ dataDir, port: 0, log: silent })).rejects.toThrow(DataDirInUseError);
    await first.stop();
    const second = await startApiServer({ dataDir, port: 0, log: silent });
    expect(second.url).toBe(first.url);
    await second.stop();
  });
});
