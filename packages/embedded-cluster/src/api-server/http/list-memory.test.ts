import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { rawClient, secretsPath } from "../testing/test-server.ts";

it("eight large lists at once take a part of the memory that they would whole", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "holdfast-api-"));
  const script = join(import.meta.dirname, "../testing/large-objects.ts");
  const server = fork(script, [dataDir], { execArgv: ["--disable-warning=ExperimentalWarning"] });
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await rm(dataDir, { recursive: true, force: true, maxRetries: 3 });
  });
  const [kubeconfigPath] = await once(server, "message");
  const client = rawClient(String(kubeconfigPath));
  const mebibytes = (member: "VmRSS" | "VmHWM"): number => {
    const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
    return Number(new RegExp(`${member}:\\s+(\\d+) kB`, "u").exec(status)?.[1]) / 1024;
  };
  const before = mebibytes("VmRSS");
  const sizeOfList = async (): Promise<number> => {
    let size = 0;
    for await (const chunk of await client.open("GET", secretsPath, undefined, {})) size += chunk.length;
    return size;
  };
  const sizes = await Promise.all(Array.from({ length: 8 }, sizeOfList));
  expect(Math.min(...sizes)).toBeGreaterThan(40 * 1.3 * 1024 * 1024);
  // Made whole, each is there twice at least, as text and as bytes: 832 MiB.
  expect(mebibytes("VmHWM") - before).toBeLessThan(500);
});
