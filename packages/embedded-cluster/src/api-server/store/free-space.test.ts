import { spawnSync } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "./database.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-free-"));
  const db = openDatabase(directory, directory);
  db.exec("BEGIN");
  const insert = db.prepare("INSERT INTO objects VALUES ('r', 'n', ?, ?, ?, ?)");
  for (let at = 0; at < 40; at += 1) insert.run(`o${at}`, `u${at}`, at, "x".repeat(1024 * 1024));
  db.exec("COMMIT; DELETE FROM objects WHERE rv >= 10");
  db.close();
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const size = async (): Promise<number> => (await stat(join(directory, "objects.sqlite"))).size;

function kept(): unknown {
  const db = openDatabase(directory, directory);
  try {
    return { ...db.prepare("SELECT count(*) AS objects, sum(length(body)) AS bytes FROM objects").get() };
  } finally {
    db.close();
  }
}

const all = { objects: 10, bytes: 10 * 1024 * 1024 };

describe("a store whose file is mostly free", () => {
  it("is rewritten when it is opened, with all that it holds", async () => {
    const before = await size();
    expect(kept()).toEqual(all);
    expect(await size()).toBeLessThan(before / 2);
  });

  it("opens as it is where there is no room for the copy, however the disk says so", async () => {
    const before = await size();
    // A file may not grow beyond 2 MiB: what is written further fails, and not as on a full disk.
    const program = `
      const { openDatabase } = await import(process.argv[1]);
      const db = openDatabase(process.argv[2], process.argv[2]);
      db.exec("INSERT INTO meta VALUES ('later', 1)");
      console.log(db.prepare("SELECT count(*) AS n FROM objects").get().n);
      db.close();`;
    const script = 'trap "" XFSZ; ulimit -f 4096; exec "$0" "$@"';
    const node = [process.execPath, "--input-type=module", "-e", program];
    const opened = spawnSync("sh", ["-c", script, ...node, join(import.meta.dirname, "database.ts"), directory], {
      encoding: "utf8",
    });
    expect(opened.stdout, opened.stderr).toBe("10\n");
    expect(await size()).toBe(before);
    expect(kept()).toEqual(all);
  });
});
