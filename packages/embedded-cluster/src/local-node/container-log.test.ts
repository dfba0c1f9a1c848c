import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ContainerLog } from "./container-log.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-log-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const end = (log: ContainerLog) => new Promise<void>((resolve) => log.end(resolve));

describe("ContainerLog", () => {
  it("keeps the newest bytes in the file and the ones before in one older file, each within the limit", async () => {
    const path = join(folder, "x.log");
    const log = new ContainerLog(path, (error) => expect(error).toBeUndefined(), 10);
    for (const part of ["first-", "second-", "third-", "last"]) log.write(part);
    await end(log);
    expect(await readFile(path, "utf8")).toBe("third-last");
    expect(await readFile(`${path}.1`, "utf8")).toBe("second-");
  });

  it("goes on from what an earlier run left", async () => {
    const path = join(folder, "x.log");
    for (const part of ["one ", "two"]) {
      const log = new ContainerLog(path, () => undefined, 100);
      log.write(part);
      await end(log);
    }
    expect(await readFile(path, "utf8")).toBe("one two");
  });

  it("reports what it cannot store and goes on taking output", async () => {
    const lost: unknown[] = [];
    const log = new ContainerLog(join(folder, "no/such/folder.log"), (error) => lost.push(error));
    log.write("a");
    log.write("b");
    await end(log);
    expect(lost).toHaveLength(2);
  });
});
