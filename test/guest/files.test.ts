import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";

import { describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../packages/guest-link/src/loopback.testing.ts";
import { all, never, pathsOf, reads, reasonOf, repeated, soon, walks, writes } from "./file-calls.ts";
import { clientOf, type GuestProcess, guestProcess } from "./guest-process.ts";

async function guestFiles() {
  const guest = await guestProcess();
  return { ...guest, files: clientOf(guest.address).files, at: (path: string) => join(guest.root, path) };
}

const descriptorsOf = (guest: GuestProcess): number => fs.readdirSync(`/proc/${guest.child.pid}/fd`).length;

describe("writing", () => {
  it("B60 keeps every byte: all 256 values, an empty file, 20 MB at random, in pieces of any size", async () => {
    const { files, at } = await guestFiles();
    const values = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
    const large = randomBytes(20_000_000);
    const pieces = async function* () {
      for (let from = 0, size = 1; from < large.length; from += size, size = (size * 7) % 1_000_003)
        yield large.subarray(from, from + size);
    };
    await writes(files, "values", values);
    await writes(files, "empty", "");
    const written = await writes(files, "large", pieces(), { sizeBytes: large.length });
    expect(written).toMatchObject({ path: "large", type: "regular", sizeBytes: large.length, mode: 0o644 });
    expect(fs.readFileSync(at("values")).equals(values)).toBe(true);
    expect(fs.readFileSync(at("large")).equals(large)).toBe(true);
    expect((await reads(files, "values")).equals(values)).toBe(true);
    expect(await reads(files, "empty")).toHaveLength(0);
    expect((await reads(files, "large")).equals(large)).toBe(true);
  });

  it("B41 takes uploads of sizes around the buffers' edges whole", async () => {
    const { files } = await guestFiles();
    for (const size of [16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_048_577]) {
      const bytes = randomBytes(size);
      await writes(files, "edge", bytes, { sizeBytes: size });
      expect((await reads(files, "edge")).equals(bytes), `${size} bytes`).toBe(true);
    }
  });

  it("G27 keeps mode and owner of the file that it replaces, and takes another mode when told", async () => {
    const { files, at } = await guestFiles();
    await writes(files, "tool", "one");
    fs.chownSync(at("tool"), 1234, 1235);
    fs.chmodSync(at("tool"), 0o2751);
    expect(await writes(files, "tool", "two")).toMatchObject({ mode: 0o2751 });
    expect(fs.statSync(at("tool"))).toMatchObject({ uid: 1234, gid: 1235, mode: 0o102751, size: 3 });
    expect(await writes(files, "tool", "three", { mode: 0o600 })).toMatchObject({ mode: 0o600 });
    expect(await reasonOf(writes(files, "tool", "x", { mode: 0o10000 }))).toBe("INVALID_REQUEST");
  });

  it("G27 with if_absent lets one of many writers win", async () => {
    const { files, at } = await guestFiles();
    const tries = Array.from({ length: 20 }, (_, n) => writes(files, "one", `${n}`, { ifAbsent: true }));
    const outcomes = await Promise.allSettled(tries);
    const won = outcomes.findIndex(({ status }) => status === "fulfilled");
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await reasonOf(tries[(won + 1) % 20] ?? Promise.resolve())).toBe("FILE_EXISTS");
    expect(fs.readFileSync(at("one"), "utf8")).toBe(String(won));
  });

  it("G27 with if_unchanged refuses when somebody else has changed the file, also while the content came", async () => {
    const { files, at } = await guestFiles();
    const first = await writes(files, "doc", "one");
    const second = await writes(files, "doc", "two", { ifUnchanged: first.etag });
    expect(await reasonOf(writes(files, "doc", "three", { ifUnchanged: first.etag }))).toBe("FILE_CHANGED");
    const meanwhile = async function* () {
      yield Buffer.from("th");
      fs.writeFileSync(at("doc"), "their own");
      yield Buffer.from("ree");
    };
    expect(await reasonOf(writes(files, "doc", meanwhile(), { ifUnchanged: second.etag }))).toBe("FILE_CHANGED");
    expect(fs.readFileSync(at("doc"), "utf8")).toBe("their own");
    expect(await reasonOf(writes(files, "none", "x", { ifUnchanged: first.etag }))).toBe("FILE_CHANGED");
  });

  it("an etag is the one of stat, and changes with a change in place", async () => {
    const { files, at } = await guestFiles();
    const { etag } = await writes(files, "doc", "one");
    expect((await files.stat("doc", soon())).etag).toBe(etag);
    const before = fs.statSync(at("doc"), { bigint: true }).mtimeNs;
    await eventually(() => {
      fs.writeFileSync(at("doc"), "eno"); // Again until the kernel's clock has ticked.
      return fs.statSync(at("doc"), { bigint: true }).mtimeNs !== before;
    });
    expect((await files.stat("doc", soon())).etag).not.toBe(etag);
  });

  it("another size than was announced fails and leaves the old file", async () => {
    const { files, at, root } = await guestFiles();
    await writes(files, "doc", "old");
    for (const sizeBytes of [2, 4]) {
      expect(await reasonOf(writes(files, "doc", "new", { sizeBytes }))).toBe("INVALID_REQUEST");
    }
    expect(fs.readFileSync(at("doc"), "utf8")).toBe("old");
    expect(fs.readdirSync(root)).toEqual(["doc"]);
  });

  it("follows a link that stays inside, and makes parents only when told", async () => {
    const { files, at } = await guestFiles();
    await writes(files, "real", "old");
    fs.symlinkSync("real", at("link"));
    expect(await writes(files, "link", "new")).toMatchObject({ path: "real" });
    expect(fs.readFileSync(at("real"), "utf8")).toBe("new");
    expect(fs.readlinkSync(at("link"))).toBe("real");
    expect(await reasonOf(writes(files, "a/b/c", "x"))).toBe("FILE_NOT_FOUND");
    await writes(files, "a/b/c", "x", { makeParents: true });
    expect(fs.statSync(at("a/b")).mode & 0o7777).toBe(0o755);
    expect(await reasonOf(writes(files, "a/b", "x"))).toBe("NOT_REGULAR_FILE");
    expect(await reasonOf(writes(files, "real/x", "x", { makeParents: true }))).toBe("FILE_NOT_FOUND");
  });
});

describe("a write that does not come to its end", () => {
  it("B63 leaves the old file whole and nothing else: a client that goes, content that throws", async () => {
    const { files, at, root } = await guestFiles();
    const old = randomBytes(1_000_000);
    await writes(files, "doc", old);
    const gone = new AbortController();
    const cut = async function* () {
      yield* repeated(Buffer.alloc(65_536, 1), 40);
      gone.abort(new Error("the client went"));
      yield* repeated(Buffer.alloc(65_536, 1), 40);
    };
    await expect(writes(files, "doc", cut(), {}, gone.signal)).rejects.toThrow("the client went");
    const throwing = async function* () {
      yield Buffer.from("half");
      throw new Error("no more content");
    };
    await expect(writes(files, "doc", throwing())).rejects.toThrow("no more content");
    await eventually(() => fs.readdirSync(root).length === 1);
    expect(fs.readFileSync(at("doc")).equals(old)).toBe(true);
  });

  it("B63 leaves the old file whole when the agent is killed, and the next agent removes what it left", async () => {
    const first = await guestFiles();
    const old = randomBytes(10_000_000);
    await writes(first.files, "sub/doc", old, { makeParents: true });
    const killing = async function* () {
      yield* repeated(Buffer.alloc(65_536, 1), 64);
      await eventually(() => staged(first.root).some((file) => file.size > 1_000_000));
      first.child.kill("SIGKILL");
      await first.exited;
      yield Buffer.from("more");
    };
    await expect(writes(first.files, "sub/doc", killing())).rejects.toMatchObject({ name: "GuestLost" });
    expect(staged(first.root)).toHaveLength(1);
    await guestProcess(first);
    expect(fs.readFileSync(first.at("sub/doc")).equals(old)).toBe(true);
    expect(fs.readdirSync(first.root)).toEqual(["sub"]);
    expect(fs.readdirSync(first.at("sub"))).toEqual(["doc"]);
  });

  it("B63 on a full disk is DISK_FULL at once, and leaves the old file whole", async ({ skip }) => {
    const { files, at } = await guestFiles();
    fs.mkdirSync(at("small"));
    if (!mounted("tmpfs", at("small"), "size=4m")) return skip("mounting is not allowed here");
    const old = randomBytes(1_000_000);
    await writes(files, "small/doc", old);
    let pulled = 0;
    const endless = async function* () {
      for (const piece = Buffer.alloc(65_536, 1); pulled < 10_000; pulled += 1) yield piece;
    };
    expect(await reasonOf(writes(files, "small/doc", endless()))).toBe("DISK_FULL");
    expect(pulled).toBeLessThan(1_000);
    expect(fs.readFileSync(at("small/doc")).equals(old)).toBe(true);
    await eventually(() => fs.readdirSync(at("small")).length === 1);
    expect(await writes(files, "small/doc", "fits")).toMatchObject({ sizeBytes: 4 });
  });
});

describe("reading", () => {
  it("G28 gives ranges, cut off at the end; an offset past the end is refused", async () => {
    const { files } = await guestFiles();
    await writes(files, "digits", "0123456789");
    const range = async (offset: number, lengthBytes?: number) =>
      (await reads(files, "digits", { offset, lengthBytes })).toString();
    expect(await range(3, 4)).toBe("3456");
    expect(await range(8, 100)).toBe("89");
    expect(await range(10)).toBe("");
    expect(await range(2, 0)).toBe("");
    expect(await reasonOf(reads(files, "digits", { offset: 11 }))).toBe("OFFSET_OUT_OF_RANGE");
  });

  it("G28 refuses a FIFO, a socket, a device and a directory at once, and the guest serves on", async () => {
    const { files, at, child } = await guestFiles();

    spawnSync("mkfifo", [at("fifo")]);
    spawnSync("mknod", [at("null"), "c", "1", "3"]);
    fs.mkdirSync(at("directory"));
    for (const path of ["fifo", "directory", ...(fs.existsSync(at("null")) ? ["null"] : [])]) {
      expect(await reasonOf(reads(files, path)), path).toBe("NOT_REGULAR_FILE");
      expect(await reasonOf(writes(files, path, "x")), path).toBe("NOT_REGULAR_FILE");
    }
    expect((await files.stat("fifo", soon())).type).toBe("fifo");
    expect(child.exitCode).toBe(null);
  });

  it("G28 of a file that becomes shorter fails as FILE_CHANGED, never as a short file", async () => {
    const { files, at } = await guestFiles();
    fs.writeFileSync(at("shrinks"), Buffer.alloc(100_000_000));
    const run = files.read({ path: "shrinks", offset: 0, lengthBytes: undefined }, never)[Symbol.asyncIterator]();
    await run.next();
    fs.truncateSync(at("shrinks"), 1_000);
    const toItsEnd = async (): Promise<void> => {
      while (!(await run.next()).done);
    };
    expect(await reasonOf(toItsEnd())).toBe("FILE_CHANGED");
  });

  it("a reader that leaves early costs no descriptor and no stream", async () => {
    const guest = await guestFiles();
    fs.writeFileSync(guest.at("big"), Buffer.alloc(20_000_000));
    await reads(guest.files, "big", { lengthBytes: 1 });
    const before = descriptorsOf(guest);
    for (let turn = 0; turn < 100; turn += 1) {
      for await (const event of guest.files.read({ path: "big", offset: 0, lengthBytes: undefined }, never)) {
        if (event.t === "chunk") break;
      }
    }
    await eventually(() => descriptorsOf(guest) <= before + 4);
    expect((await reads(guest.files, "big")).length).toBe(20_000_000);
  });

  it("refuses the 65th stream by name, and serves again when one has ended", async () => {
    const { files, at } = await guestFiles();
    fs.writeFileSync(at("big"), Buffer.alloc(50_000_000));
    const held = await Promise.all(
      Array.from({ length: 64 }, async () => {
        const run = files.read({ path: "big", offset: 0, lengthBytes: undefined }, never)[Symbol.asyncIterator]();
        await run.next();
        return run;
      }),
    );
    expect(await reasonOf(reads(files, "big", { lengthBytes: 1 }))).toBe("STREAM_CAPACITY");
    await held[0]?.return?.(undefined);
    await expect.poll(() => reasonOf(reads(files, "big", { lengthBytes: 1 })), { timeout: 8_000 }).toBe("it succeeded");
    await Promise.all(held.map((run) => run.return?.(undefined)));
  });
});

describe("lists", () => {
  it("G29 tell types, sizes, times, modes and link targets", async () => {
    const { files, at } = await guestFiles();
    fs.writeFileSync(at("file"), "12345", { mode: 0o640 });
    fs.utimesSync(at("file"), 1_000, 1_234.5);
    fs.mkdirSync(at("directory"));
    fs.symlinkSync("/etc/passwd", at("link"));
    const listed = new Map((await all(files.list(".", never))).map((file) => [file.path, file]));
    expect([...listed.keys()].sort()).toEqual(["directory", "file", "link"]);
    expect(listed.get("file")).toMatchObject({ type: "regular", sizeBytes: 5, mode: 0o640, modifiedAtMs: 1_234_500 });
    expect(listed.get("directory")).toMatchObject({ type: "directory", etag: undefined });
    expect(listed.get("link")).toMatchObject({ type: "symlink", linkTarget: "/etc/passwd" });
    expect(await files.stat("", soon())).toMatchObject({ path: "", type: "directory" });
    expect(await reasonOf(all(files.list("file", never)))).toBe("NOT_DIRECTORY");
    expect(await reasonOf(all(files.list("none", never)))).toBe("FILE_NOT_FOUND");
  });

  it("B60 G30 show names that are not UTF-8 with their bytes, and those with a newline as they are", async () => {
    const { files, root } = await guestFiles();
    const raw = Buffer.from([0x66, 0xff, 0xfe, 0x0a]);
    fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), raw]), "x");
    fs.writeFileSync(join(root, "new\nline"), "y");
    const listed = await all(files.list("", never));
    const odd = listed.find(({ rawName }) => rawName !== undefined);
    expect(Buffer.from(odd?.rawName ?? []).equals(raw)).toBe(true);
    expect(odd).toMatchObject({ path: "f\ufffd\ufffd\n", type: "regular", sizeBytes: 1 });
    expect(await reasonOf(reads(files, odd?.path ?? ""))).toBe("FILE_NOT_FOUND");
    expect((await reads(files, "new\nline")).toString()).toBe("y");
  });

  it("B52 G29 of 50,000 entries and of long names come whole, in batches that any client takes", async () => {
    const { files, at } = await guestFiles();
    fs.mkdirSync(at("many"));
    for (let n = 0; n < 50_000; n += 1) fs.closeSync(fs.openSync(at(`many/${n}`), "w"));
    const listed = await all(files.list("many", never));
    expect(new Set(pathsOf(listed)).size).toBe(50_000);
    expect(await reasonOf(files.remove({ path: "many", recursive: false }, never))).toBe("DIRECTORY_NOT_EMPTY");
    await files.remove({ path: "many", recursive: true }, never);
    expect(fs.existsSync(at("many"))).toBe(false);
    fs.mkdirSync(at("long"));
    for (let n = 0; n < 600; n += 1) fs.symlinkSync("t".repeat(4_000), at(`long/${n}${"n".repeat(240)}`));
    let batches = 0;
    for await (const batch of files.list("long", never)) {
      batches += 1;
      const bytes = batch.reduce((sum, { path, linkTarget }) => sum + path.length + (linkTarget?.length ?? 0), 0);
      expect(bytes).toBeLessThan(1024 * 1024);
    }
    expect(batches).toBeGreaterThan(2);
  });

  it("G29 walks by glob, depth and number, parents before children, never through a link", async () => {
    const { files, at } = await guestFiles();
    for (const path of ["src/a.ts", "src/deep/b.ts", "src/deep/er/c.js", ".git/config", "top.ts"]) {
      fs.mkdirSync(join(at(path), ".."), { recursive: true });
      fs.writeFileSync(at(path), path);
    }
    fs.symlinkSync("src", at("loop"));
    fs.symlinkSync("..", at("src/up"));
    const whole = [
      "loop",
      "src",
      "src/a.ts",
      "src/deep",
      "src/deep/b.ts",
      "src/deep/er",
      "src/deep/er/c.js",
      "src/up",
      "top.ts",
    ];
    const walked = await walks(files, "");
    expect(pathsOf(walked)).toEqual(whole);
    const order = walked.map(({ path }) => path);
    for (const path of order) {
      if (path.includes("/")) expect(order.indexOf(join(path, ".."))).toBeLessThan(order.indexOf(path));
    }
    expect(pathsOf(await walks(files, "", { hidden: true }))).toEqual([".git", ".git/config", ...whole]);
    expect(pathsOf(await walks(files, "", { glob: "**/*.ts" }))).toEqual(["src/a.ts", "src/deep/b.ts", "top.ts"]);
    expect(pathsOf(await walks(files, "src", { glob: "*/*.ts" }))).toEqual(["src/deep/b.ts"]);
    expect(pathsOf(await walks(files, "", { glob: ".git/*" }))).toEqual([".git/config"]);
    expect(pathsOf(await walks(files, "", { maxDepth: 1 }))).toEqual(["loop", "src", "top.ts"]);
    expect(pathsOf(await walks(files, "src", { maxDepth: 2, glob: "**/*.js" }))).toEqual([]);
    expect(await walks(files, "", { maxEntries: 3 })).toHaveLength(3);
    expect(await reasonOf(walks(files, "none"))).toBe("FILE_NOT_FOUND");
  });

  it("a walk that may not look at everything fails as WALK_LIMIT, and exactly everything is enough", async () => {
    const { files, at } = await guestFiles();
    for (let n = 0; n < 100; n += 1) fs.writeFileSync(at(`f${n}`), "");
    expect(await walks(files, "", { maxVisited: 100 })).toHaveLength(100);
    expect(await reasonOf(walks(files, "", { maxVisited: 99 }))).toBe("WALK_LIMIT");
    await expect(walks(files, "", { maxVisited: 99, glob: "none" })).rejects.toMatchObject({
      reason: "WALK_LIMIT",
      metadata: { field: "max_visited", limit: "99" },
    });
  });

  it("a tree may be 512 directories deep, its top counted; deeper, its walk and its removal are refused by the setting", async () => {
    const { files, at } = await guestFiles();
    fs.mkdirSync(at(`deep${"/d".repeat(511)}`), { recursive: true });
    expect(await walks(files, "deep")).toHaveLength(511);
    await files.remove({ path: "deep", recursive: true }, never);
    fs.mkdirSync(at(`deep${"/d".repeat(512)}`), { recursive: true });
    const byDepth = { limit: "512", setting: "treeDepthMax" };
    await expect(walks(files, "deep")).rejects.toMatchObject({ reason: "WALK_LIMIT", metadata: byDepth });
    await expect(files.remove({ path: "deep", recursive: true }, never)).rejects.toMatchObject({
      reason: "DIRECTORY_NOT_EMPTY",
      metadata: byDepth,
    });
    fs.rmSync(at("deep"), { recursive: true });
  });
});

describe("directories, moves and removals", () => {
  it("G29 makes directories, and says when something stands there", async () => {
    const { files, at } = await guestFiles();
    const made = await files.makeDirectory({ path: "a", makeParents: false, mode: 0o1770 }, soon());
    expect(made).toMatchObject({ path: "a", type: "directory", mode: 0o1770 });
    expect(await reasonOf(files.makeDirectory({ path: "a", makeParents: false, mode: undefined }, soon()))).toBe(
      "FILE_EXISTS",
    );
    expect(await reasonOf(files.makeDirectory({ path: "b/c", makeParents: false, mode: undefined }, soon()))).toBe(
      "FILE_NOT_FOUND",
    );
    await files.makeDirectory({ path: "b/c", makeParents: true, mode: undefined }, soon());
    expect(await files.makeDirectory({ path: "b/c", makeParents: true, mode: undefined }, soon())).toMatchObject({
      path: "b/c",
    });
    await writes(files, "file", "x");
    expect(await reasonOf(files.makeDirectory({ path: "file", makeParents: true, mode: undefined }, soon()))).toBe(
      "FILE_EXISTS",
    );
    expect(fs.statSync(at("b/c")).mode & 0o7777).toBe(0o755);
  });

  it("G29 moves files, links and directories; only `replace` replaces", async () => {
    const { files, at } = await guestFiles();
    const move = (from: string, to: string, replace = false) => files.move({ from, to, replace }, soon());
    await writes(files, "a", "a");
    await writes(files, "b", "b");
    fs.symlinkSync("/etc", at("link"));
    fs.mkdirSync(at("full/in"), { recursive: true });
    fs.mkdirSync(at("empty"));
    expect(await reasonOf(move("a", "b"))).toBe("FILE_EXISTS");
    expect(await reasonOf(move("none", "c"))).toBe("FILE_NOT_FOUND");
    expect(await reasonOf(move("a", "none/c"))).toBe("FILE_NOT_FOUND");
    expect(await move("a", "b", true)).toMatchObject({ path: "b", sizeBytes: 1 });
    expect(fs.readFileSync(at("b"), "utf8")).toBe("a");
    expect(await move("link", "moved")).toMatchObject({ type: "symlink", linkTarget: "/etc" });
    expect(await reasonOf(move("empty", "full", true))).toBe("DIRECTORY_NOT_EMPTY");
    expect(await reasonOf(move("b", "full", true))).toBe("FILE_EXISTS");
    expect(await reasonOf(move("full", "b", true))).toBe("FILE_EXISTS");
    expect(await reasonOf(move("full", "full/in/x"))).toBe("INVALID_REQUEST");
    expect(await reasonOf(move("full", "empty"))).toBe("FILE_EXISTS");
    expect(await move("full", "elsewhere")).toMatchObject({ path: "elsewhere", type: "directory" });
    expect(fs.readdirSync(at("elsewhere"))).toEqual(["in"]);
  });

  it("a move over another name of the same file leaves only the new name; one onto itself leaves it", async () => {
    const { files, at } = await guestFiles();
    const move = (from: string, to: string) => files.move({ from, to, replace: true }, soon());
    await writes(files, "a", "a");
    fs.mkdirSync(at("d"));
    fs.linkSync(at("a"), at("d/a"));
    await move("a", "d/a"); // rename(2) does nothing here, and says that it is done.
    expect(fs.existsSync(at("a"))).toBe(false);
    await move("d/a", "d/../d/a");
    expect(fs.readFileSync(at("d/a"), "utf8")).toBe("a");
  });

  it("of many moves to one name, one is done and no file is lost", async () => {
    const { files, root } = await guestFiles();
    for (let n = 0; n < 10; n += 1) await writes(files, `from${n}`, `${n}`);
    const moves = Array.from({ length: 10 }, (_, n) =>
      files.move({ from: `from${n}`, to: "to", replace: false }, soon()),
    );
    const outcomes = await Promise.allSettled(moves);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(fs.readdirSync(root)).toHaveLength(10);
  });

  it("G29 removes files, links themselves and trees; never the root", async () => {
    const { files, at } = await guestFiles();
    const remove = (path: string, recursive = false) => files.remove({ path, recursive }, never);
    await writes(files, "kept/file", "x", { makeParents: true });
    await writes(files, "tree/a/b/c", "x", { makeParents: true });
    fs.symlinkSync(at("kept"), at("tree/a/link"));
    fs.symlinkSync("kept", at("link"));
    await remove("link", true);
    expect(await reasonOf(remove("tree"))).toBe("DIRECTORY_NOT_EMPTY");
    await remove("tree", true);
    expect(await reasonOf(remove("tree", true))).toBe("FILE_NOT_FOUND");
    expect(await reasonOf(remove("", true))).toBe("INVALID_REQUEST");
    expect(fs.readFileSync(at("kept/file"), "utf8")).toBe("x");
    expect(fs.readdirSync(at(""))).toEqual(["kept"]);
  });
});

/** Mounts for one test; false where that is not allowed. */
function mounted(type: string, path: string, options: string): boolean {
  const { status } = spawnSync("mount", ["-t", type, "-o", options, "holdfast-test", path]);
  if (status !== 0) return false;
  onTestFinished(() => {
    spawnSync("umount", ["-l", path]);
  });
  return true;
}

/** What a write in progress has put on the disk. */
function staged(root: string): fs.Stats[] {
  const folder = join(root, ".holdfast-tmp");
  return fs.existsSync(folder) ? fs.readdirSync(folder).map((name) => fs.statSync(join(folder, name))) : [];
}
