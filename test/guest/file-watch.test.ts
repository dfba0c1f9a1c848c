import { spawn, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { changeOf, never, reads, reasonOf, watches, writes } from "./file-calls.ts";
import { clientOf, guestProcess } from "./guest-process.ts";

async function guestFiles() {
  const guest = await guestProcess();
  return { ...guest, files: clientOf(guest.address).files, at: (path: string) => join(guest.root, path) };
}

describe("a watch", () => {
  it("G29 reports what comes, changes and goes, and nothing of the agent's own folder", async () => {
    const { files, at } = await guestFiles();
    fs.writeFileSync(at("there"), "x");
    const watch = await watches(files, "");
    expect(watch.directories).toBe(1);
    await writes(files, "new", "x");
    fs.appendFileSync(at("there"), "y");
    fs.rmSync(at("new"));
    await watch.until(changeOf("new", "removed"));
    expect(watch.events.filter(changeOf("new", "created"))).toHaveLength(1);
    expect(watch.events.some(changeOf("there", "modified"))).toBe(true);
    expect(watch.events.filter((event) => event.t === "change" && event.path.startsWith(".holdfast"))).toEqual([]);
  });

  it("reports names that are not UTF-8 with their bytes", async () => {
    const { files, root } = await guestFiles();
    const watch = await watches(files, "");
    fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]), "x");
    await watch.until(
      (event) => event.t === "change" && Buffer.from(event.rawName ?? []).equals(Buffer.from([0xff, 0xfe])),
    );
  });

  it("of a tree also hears directories that come, with what was put in them before they were watched", async () => {
    const { files, at, root } = await guestFiles();
    fs.mkdirSync(at("old/deep"), { recursive: true });
    const watch = await watches(files, "", true);
    expect(watch.directories).toBe(3);
    const script = "for n in $(seq 60); do mkdir -p n$n/a/b && echo x > n$n/a/b/f$n; done";
    spawnSync("sh", ["-c", script], { cwd: root });
    for (let n = 1; n <= 60; n += 1) await watch.until(changeOf(`n${n}/a/b/f${n}`, "created"));
    fs.appendFileSync(at("n7/a/b/f7"), "later");
    await watch.until(changeOf("n7/a/b/f7", "modified"));
    fs.writeFileSync(at("old/deep/file"), "x");
    await watch.until(changeOf("old/deep/file", "created"));
  });

  it("of a tree follows a directory that is moved in it, and leaves one that is moved out", async () => {
    const { files, at, root } = await guestFiles();
    fs.mkdirSync(at("w/a/in"), { recursive: true });
    fs.mkdirSync(at("out"));
    const watch = await watches(files, "w", true);
    fs.renameSync(at("w/a"), at("w/b"));
    await watch.until(changeOf("w/b/in", "created"));
    fs.writeFileSync(at("w/b/in/file"), "x");
    await watch.until(changeOf("w/b/in/file", "created"));
    fs.renameSync(at("w/b"), join(root, "out/b"));
    await watch.until(changeOf("w/b", "removed"));
    fs.writeFileSync(at("out/b/in/unheard"), "x");
    fs.writeFileSync(at("w/last"), "x");
    await watch.until(changeOf("w/last", "created"));
    expect(watch.events.filter((event) => event.t === "change" && event.path.includes("unheard"))).toEqual([]);
  });

  it("does not lead through links, nor out of the workspace", async () => {
    const { files, at } = await guestFiles();
    fs.symlinkSync("/tmp", at("link"));
    expect((await watches(files, "", true)).directories).toBe(1);
    expect(await reasonOf(watches(files, "link"))).toBe("PATH_OUTSIDE_WORKSPACE");
    fs.writeFileSync(at("file"), "");
    expect(await reasonOf(watches(files, "file"))).toBe("NOT_DIRECTORY");
    expect(await reasonOf(watches(files, "none"))).toBe("FILE_NOT_FOUND");
  });

  it("ends by name when its directory is removed or moved away", async () => {
    const { files, at } = await guestFiles();
    fs.mkdirSync(at("gone"));
    fs.mkdirSync(at("moved"));
    const gone = await watches(files, "gone", true);
    const moved = await watches(files, "moved");
    fs.rmdirSync(at("gone"));
    fs.renameSync(at("moved"), at("elsewhere"));
    expect(await gone.ended).toMatchObject({ reason: "FILE_NOT_FOUND" });
    expect(await moved.ended).toMatchObject({ reason: "FILE_NOT_FOUND" });
  });
});

describe("B66 a watch that cannot keep everything", () => {
  it("says overflow to a client that was paused, and goes on after it", async () => {
    const { files, at, child } = await guestFiles();
    fs.mkdirSync(at("many/inner"), { recursive: true });
    const over = new AbortController();
    onTestFinished(() => over.abort());
    const run = files.watch({ path: "many", recursive: true }, over.signal)[Symbol.asyncIterator]();
    expect((await run.next()).value).toEqual({ t: "watching", directories: 2 });
    const before = rssOf(child.pid);
    await made(100_000, at("many"));
    expect(rssOf(child.pid) - before).toBeLessThan(100 * 1024 * 1024);
    let told = 0;
    for (let next = await run.next(); next.value?.t !== "overflow"; next = await run.next()) {
      told += 1;
      expect(told, "everything was told, so nothing was lost").toBeLessThan(100_000);
    }
    fs.writeFileSync(at("many/inner/after"), "x");
    for (;;) {
      const { value } = await run.next();
      if (value?.t === "change" && value.path === "many/inner/after") break;
    }
  });

  it("is refused with the kernel's limit by its name, also when the limit is met while it runs", async ({ skip }) => {
    const { files, at } = await guestFiles();
    for (let n = 0; n < 200; n += 1) fs.mkdirSync(at(`d${n}`));
    const grows = await watches(files, "d0", true);
    const limit = "/proc/sys/fs/inotify/max_user_watches";
    const former = fs.readFileSync(limit, "utf8");
    try {
      fs.writeFileSync(limit, "50");
    } catch {
      return skip("the kernel's limits cannot be changed here");
    }
    try {
      const refusal = await watches(files, "", true).catch((error: unknown) => error);
      expect(refusal).toMatchObject({
        reason: "WATCH_LIMIT",
        metadata: { limit: "fs.inotify.max_user_watches", value: "50" },
      });
      for (let n = 0; n < 60; n += 1) fs.mkdirSync(at(`d0/d${n}`));
      expect(await grows.ended).toMatchObject({ reason: "WATCH_LIMIT" });
    } finally {
      fs.writeFileSync(limit, former);
    }
    expect((await watches(files, "", true)).directories).toBeGreaterThan(200);
  });

  it("costs a guest nothing when it is over: descriptors return to where they were", async () => {
    const { files, at, child } = await guestFiles();
    fs.mkdirSync(at("a/b/c"), { recursive: true });
    const open = (): number => fs.readdirSync(`/proc/${child.pid}/fd`).length;
    await reads(files, "none").catch(() => undefined);
    const before = open();
    for (let turn = 0; turn < 80; turn += 1) {
      for await (const event of files.watch({ path: "", recursive: true }, never)) {
        expect(event).toEqual({ t: "watching", directories: 4 });
        break;
      }
    }
    await expect.poll(open, { timeout: 8_000 }).toBeLessThanOrEqual(before + 4);
  });
});

/** Makes files with long names, so that no buffer on the way holds what is told of them, in another process: this one has to answer the guest meanwhile. */
async function made(count: number, directory: string): Promise<void> {
  const script = `for (let n = 0; n < ${count}; n += 1) fs.closeSync(fs.openSync("n".repeat(200) + n, "w"))`;
  const child = spawn(process.execPath, ["-e", script], { cwd: directory, stdio: "inherit" });
  expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(0);
}

function rssOf(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}
