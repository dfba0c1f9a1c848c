import { spawn } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { bundleGuestAgent } from "../../services/guest-agent/bundle.ts";
import { all, never, reads, reasonOf, soon, walks, writes } from "./file-calls.ts";
import { clientOf, guestProcess } from "./guest-process.ts";

/** A guest beside a directory that is none of its business. */
async function guestBesideSecrets() {
  const outside = fs.mkdtempSync(join(tmpdir(), "holdfast-outside-"));
  onTestFinished(() => fs.rmSync(outside, { recursive: true, force: true }));
  fs.writeFileSync(join(outside, "passwd"), "secret");
  const guest = await guestProcess();
  return { ...guest, outside, files: clientOf(guest.address).files, at: (path: string) => join(guest.root, path) };
}

describe("B61 G30 no path leads out", () => {
  it("whatever is asked: read, write, list, stat, move, remove, make, walk", async () => {
    const { files, outside, at } = await guestBesideSecrets();
    fs.symlinkSync(outside, at("l"));
    fs.symlinkSync(join(outside, "passwd"), at("f"));
    fs.mkdirSync(at("d"));
    fs.symlinkSync("../../..", at("d/up"));
    await writes(files, "a", "mine");
    const make = (path: string) => files.makeDirectory({ path, makeParents: true, mode: undefined }, soon());
    const move = (from: string, to: string) => files.move({ from, to, replace: true }, soon());
    const tries: Record<string, () => Promise<unknown>> = {
      "read through a link": () => reads(files, "l/passwd"),
      "read a link": () => reads(files, "f"),
      "write through a link": () => writes(files, "l/new", "x"),
      "write a link": () => writes(files, "f", "x"),
      "write, making parents": () => writes(files, "l/n/e/w", "x", { makeParents: true }),
      list: () => all(files.list("l", never)),
      walk: () => walks(files, "l"),
      stat: () => files.stat("l/passwd", soon()),
      make: () => make("l/made"),
      "move out": () => move("a", "l/a"),
      "move in": () => move("l/passwd", "stolen"),
      remove: () => files.remove({ path: "l/passwd", recursive: true }, never),
      dots: () => reads(files, `../${outside.slice(tmpdir().length + 1)}/passwd`),
      "dots through a directory": () => files.stat("d/../../x", soon()),
      "dots in a link": () => files.stat("d/up/etc", soon()),
      absolute: () => reads(files, join(outside, "passwd")),
      "absolute, with dots": () => files.stat(`${at("")}/../..`, soon()),
      "a path that only begins like the root": () => files.stat(`${at("").slice(0, -1)}x/y`, soon()),
    };
    for (const [name, attempt] of Object.entries(tries)) {
      expect(await reasonOf(attempt()), name).toBe("PATH_OUTSIDE_WORKSPACE");
    }
    expect(await reasonOf(files.stat("a\0b", soon()))).toBe("INVALID_REQUEST");
    expect(await reasonOf(files.stat("..%2fpasswd", soon()))).toBe("FILE_NOT_FOUND");
    expect(await reasonOf(files.stat("n".repeat(5_000), soon()))).toBe("INVALID_REQUEST");
    expect(await reasonOf(files.stat("n".repeat(300), soon()))).toBe("INVALID_REQUEST");
    expect(await reasonOf(writes(files, "new/../../x", "x", { makeParents: true }))).toBe("FILE_NOT_FOUND");
    expect(fs.existsSync(at("new"))).toBe(false);
    expect(await reasonOf(writes(files, ".holdfast-tmp/x", "x", { makeParents: true }))).toBe("INVALID_REQUEST");
    expect(fs.readdirSync(outside)).toEqual(["passwd"]);
    expect(fs.readFileSync(join(outside, "passwd"), "utf8")).toBe("secret");
    expect(fs.readFileSync(at("a"), "utf8")).toBe("mine");
  });

  it("and links, dots and absolute paths that stay inside work", async () => {
    const { files, at, root } = await guestBesideSecrets();
    await writes(files, "real/deep/file", "inside", { makeParents: true });
    fs.symlinkSync("real/deep", at("relative"));
    fs.symlinkSync(join(root, "real"), at("absolute"));
    fs.symlinkSync("../real/./deep/../deep/file", at("real/dotted"));
    for (const path of [
      "relative/file",
      "absolute/deep/file",
      "real/dotted",
      "relative/../deep/file",
      "./real//deep/file",
      join(root, "real/deep/file"),
    ]) {
      expect((await reads(files, path)).toString(), path).toBe("inside");
    }
    expect(await files.stat("relative", soon())).toMatchObject({ type: "symlink", linkTarget: "real/deep" });
    expect(await files.stat("relative/..", soon())).toMatchObject({ path: "real", type: "directory" });
    fs.symlinkSync("round", at("round"));
    expect(await reasonOf(reads(files, "round"))).toBe("INVALID_REQUEST");
  });

  it("nor does a race, while a directory is swapped with a link to the outside again and again", async () => {
    const { files, outside, root, at } = await guestBesideSecrets();
    for (const name of ["file", "other"]) fs.writeFileSync(join(outside, name), `secret ${name}`);
    fs.mkdirSync(join(outside, "sub"));
    fs.writeFileSync(join(outside, "sub/file"), "secret sub");
    const before = snapshot(outside);
    for (const directory of ["x", "spare"]) {
      fs.mkdirSync(at(`${directory}/sub`), { recursive: true });
      for (const name of ["file", "other", "sub/file"]) fs.writeFileSync(at(`${directory}/${name}`), "mine");
    }
    fs.symlinkSync(outside, at("link"));
    const swapper = await swapping(root);
    const seen = { right: 0, refused: 0 };
    const counted = async (
      work: Promise<unknown>,
      check: (value: unknown) => void = () => undefined,
    ): Promise<void> => {
      try {
        check(await work);
        seen.right += 1;
      } catch (error) {
        if (!(error instanceof Error && "reason" in error)) throw error;
        expect(
          ["PATH_OUTSIDE_WORKSPACE", "FILE_NOT_FOUND", "FILE_EXISTS", "NOT_DIRECTORY", "INVALID_REQUEST"],
          error.message,
        ).toContain(error.reason);
        seen.refused += 1;
      }
    };
    const secret = (value: unknown): void => expect(JSON.stringify(value)).not.toContain("secret");
    const until = performance.now() + 6_000;
    const hasEnough = () => performance.now() > until && seen.right > 100 && seen.refused > 100; // A busy machine takes longer.
    for (let turn = 0; !hasEnough(); turn += 1) {
      await Promise.all([
        counted(reads(files, "x/file"), (bytes) => secret(String(bytes))),
        counted(reads(files, "x/sub/file"), (bytes) => secret(String(bytes))),
        counted(writes(files, "x/other", "mine")),
        counted(writes(files, `x/n${turn}/deep`, "mine", { makeParents: true })),
        counted(files.stat("x/passwd", soon()), () => expect.fail("a file of the outside was found")),
        counted(all(files.list("x", never)), (list) => expect(JSON.stringify(list)).not.toContain("passwd")),
        counted(walks(files, "x", { glob: "**/passwd" }), (list) => expect(list).toEqual([])),
        counted(files.move({ from: "x/other", to: `x/moved${turn}`, replace: false }, soon())),
        counted(files.remove({ path: `x/n${turn - 1}`, recursive: true }, never)),
        counted(files.makeDirectory({ path: `x/made${turn}`, makeParents: false, mode: 0o700 }, soon())),
      ]);
      await counted(files.remove({ path: "x/sub", recursive: true }, never));
      for (const directory of ["x", "spare"])
        await counted(writes(files, `${directory}/sub/file`, "mine", { makeParents: true }));
    }
    const swaps = await swapper.stop();
    expect(swaps).toBeGreaterThan(1_000);
    expect(snapshot(outside)).toEqual(before);
  });
});

/** Everything in a directory, with contents, modes and times. */
function snapshot(directory: string): unknown {
  return fs.readdirSync(directory, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    const { mode, mtimeMs, ctimeMs } = fs.statSync(path);
    return [path, mode, mtimeMs, ctimeMs, entry.isFile() ? fs.readFileSync(path, "utf8") : ""];
  });
}

/** Another process that exchanges x, a directory, with link, a link to the outside, as fast as it can: x is always one of them. */
async function swapping(root: string): Promise<{ stop(): Promise<number> }> {
  const { directory } = await bundleGuestAgent();
  const script = `
    const libc = require(${JSON.stringify(join(directory, "koffi-glibc.node"))}).load(null);
    const renameat2 = libc.func("int renameat2(int a, const char *b, int c, const char *d, uint32_t flags)");
    let swaps = 0, over = false;
    process.on("SIGTERM", () => { over = true; });
    const turn = () => {
      for (const until = Date.now() + 20; Date.now() < until; ) if (renameat2(-100, "x", -100, "link", 2) === 0) swaps += 1;
      if (over) console.log(swaps); else setImmediate(turn);
    };
    turn();`;
  const child = spawn(process.execPath, ["-e", script], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const closed = new Promise((resolve) => child.once("close", resolve));
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  return {
    async stop() {
      child.kill("SIGTERM");
      await closed;
      return Number(said);
    },
  };
}
