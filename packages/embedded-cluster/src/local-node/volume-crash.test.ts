import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recordOf } from "./json-shape.ts";
import { HostProcess } from "./testing/host-process.ts";

const isRoot = process.geteuid?.() === 0;

describe("a node that is killed among claims that come and go", () => {
  let dataDir: string;
  let host: HostProcess;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "holdfast-storm-"));
    host = await HostProcess.start(dataDir);
  });
  afterEach(async () => {
    await host.kill();
    await rm(dataDir, { recursive: true, force: true });
  });

  const volumes = () => join(dataDir, "volumes");
  const folders = async () => (await readdir(volumes())).filter((name) => !name.includes(".")).sort();
  const claimsNow = () => host.call("listClaims");
  const allBound = async () => {
    const all = await claimsNow();
    return all.every((claim) => recordOf(claim.status).phase === "Bound") && all;
  };

  // The kill comes after that many answers, among the writes, folders and renames of the others.
  it.each([1, 7, 17])(
    "after %d answers, has a disk for every claim, every byte that was there, and no other disk",
    async (answers) => {
      const names = Array.from({ length: 12 }, (_, at) => `disk-${at}`);
      await Promise.all(names.map((name) => host.call("createClaim", name)));
      await expect.poll(allBound).toBeTruthy();
      const written = new Map<string, string>();
      for (const claim of await claimsNow()) {
        const uid = claim.metadata.uid ?? "";
        written.set(uid, claim.metadata.name);
        await writeFile(join(volumes(), uid, "data"), claim.metadata.name);
      }

      let left = answers;
      const enough = Promise.withResolvers<void>();
      const storm = names.flatMap((name, at) => [
        ...(at % 2 === 0 ? [host.call("deleteClaim", name)] : []),
        host.call("createClaim", `late-${at}`),
      ]);
      const counted = storm.map((call) =>
        call.then(
          () => {
            left -= 1;
            if (left <= 0) enough.resolve();
          },
          () => undefined, // the host was killed
        ),
      );
      await enough.promise;
      await host.kill();
      await Promise.all(counted);

      host = await HostProcess.start(dataDir);
      await expect.poll(allBound).toBeTruthy();
      const uids = (await claimsNow()).map((claim) => claim.metadata.uid ?? "").sort();
      await expect.poll(folders).toEqual(uids);
      expect(await readdir(join(dataDir, "trash"))).toEqual([]);
      for (const uid of uids) {
        const name = written.get(uid);
        if (name !== undefined) expect(await readFile(join(volumes(), uid, "data"), "utf8")).toBe(name);
        if (isRoot) expect((await stat(join(volumes(), uid))).uid).toBe(1001);
      }
      expect(uids.filter((uid) => written.has(uid)).length).toBeGreaterThanOrEqual(names.length / 2);
    },
    60_000,
  );
});
