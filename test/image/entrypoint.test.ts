import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";

const entrypoint = join(dirname(dirname(import.meta.dirname)), "deploy/image/entrypoint.sh");
const name = "namzu-ws-one";
const labelOf = (of: string): string => `hf-${createHash("sha256").update(of).digest("hex").slice(0, 13)}`;
const mebibyte = 1024 * 1024;
const stopped = 78;

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-image-"));
  chmodSync(path, 0o755);
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A file of zeros, but for `at`. */
function disk(path: string, bytes: number, at?: number): string {
  const fd = openSync(path, "w");
  ftruncateSync(fd, bytes);
  if (at !== undefined) writeSync(fd, Buffer.from([1]), 0, 1, at);
  closeSync(fd);
  return path;
}

/** What the stubs answer: per program a shell script. Everything that may change a disk writes itself down. */
interface Stubs {
  readonly blkid: string;
  readonly e2fsck?: string;
  readonly mount?: string;
  readonly resize2fs?: string;
  readonly "mkfs.ext4"?: string;
  readonly stat?: string;
  readonly head?: string;
}

interface Run extends SpawnSyncReturns<string> {
  /** What was run that could change something, in order. */
  readonly did: readonly string[];
}

/** Runs the entrypoint with stubs of all that touches a disk, on a file that stands for the device. */
function run(stubs: Stubs, env: NodeJS.ProcessEnv = {}, made = (path: string) => disk(path, 2 * mebibyte)): Run {
  const work = directory();
  const bin = join(work, "bin");
  mkdirSync(bin);
  const log = join(work, "log");
  writeFileSync(log, "");
  const all: Record<string, string> = {
    // Of the kind of file alone: its size is the file's own.
    stat: `case "$3" in %F) echo "block special file";; *) exec /usr/bin/stat "$@";; esac`,
    e2fsck: "exit 0",
    mount: "exit 0",
    resize2fs: "exit 0",
    "mkfs.ext4": "exit 0",
    setpriv: 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    tini: 'shift; exec "$@"',
    ...stubs,
  };
  for (const [program, script] of Object.entries(all)) {
    const notes =
      program === "blkid" || program === "stat" || program === "head" ? "" : `echo "${program} $*" >> ${log}`;
    writeFileSync(join(bin, program), `#!/bin/sh\n${notes}\n${script}\n`, { mode: 0o755 });
  }
  const device = made(join(work, "device"));
  const result = spawnSync(entrypoint, ["sh", "-c", "echo agent runs"], {
    encoding: "utf8",
    env: {
      PATH: `${bin}:${process.env.PATH}`,
      HOLDFAST_WORKSPACE_ROOT: join(work, "workspace"),
      HOLDFAST_DISK_DEVICE: device,
      HOLDFAST_DISK_NAME: name,
      ...env,
    },
  });
  const did = readFileSync(log, "utf8").replaceAll(device, "DEVICE").split("\n").filter(Boolean);
  return { ...result, did };
}

/** The answers of blkid for a file system. */
const holds = (type: string, label: string): string =>
  `case "$*" in *TYPE*) echo "${type}";; *LABEL*) echo "${label}";; esac; exit 0`;

const changing = /mkfs|e2fsck|mount|resize2fs/;

describe("the image's entrypoint", () => {
  it("G33 formats a disk only when blkid says 'nothing here' and its beginning is readable and empty, then checks, mounts and grows it", () => {
    const result = run({ blkid: "exit 2" });
    expect(result.status, result.stderr).toBe(0);
    expect(result.stdout).toBe("agent runs\n");
    const [mkfs, fsck, mount, resize, setpriv] = result.did;
    expect(mkfs).toBe(`mkfs.ext4 -q -L ${labelOf(name)} -E root_owner=1001:1001 -- DEVICE`);
    expect(fsck).toBe("e2fsck -p -- DEVICE");
    expect(mount).toMatch(/^mount -t ext4 -o noatime,nodev,nosuid -- DEVICE /);
    expect(resize).toBe("resize2fs DEVICE");
    expect(setpriv).toContain("--no-new-privs");
    expect(labelOf(name).length).toBeLessThanOrEqual(16);
  });

  it.each([1, 3, 4, 5, 6, 7, 8, 16, 32, 64, 126, 127, 137, 255])(
    "G33 stops the pod and touches nothing when blkid answers %i",
    (code) => {
      const result = run({ blkid: `exit ${code}` });
      expect(result.status).toBe(stopped);
      expect(result.stdout).toBe("");
      expect(result.stderr).toContain(`exit ${code}`);
      expect(result.did.filter((line) => changing.test(line))).toEqual([]);
    },
  );

  it("G33 takes a disk that cannot be read for a broken one, never for an empty one", () => {
    const result = run({ blkid: "exit 2", head: "echo 'head: Input/output error' >&2; exit 1" });
    expect(result.status).toBe(stopped);
    expect(result.stderr).toContain("cannot be read");
    expect(result.did).toEqual([]);
  });

  it.each([0, 1, 511, 1_024, mebibyte - 1])(
    "G33 formats no disk of which byte %i is not zero, whatever blkid knows of it",
    (at) => {
      const result = run({ blkid: "exit 2" }, {}, (path) => disk(path, 2 * mebibyte, at));
      expect(result.status).toBe(stopped);
      expect(result.stderr).toContain("not empty");
      expect(result.did).toEqual([]);
    },
  );

  it("G33 formats nothing that is smaller than what must be looked at", () => {
    const result = run({ blkid: "exit 2" }, {}, (path) => disk(path, 1_000));
    expect(result.status).toBe(stopped);
    expect(result.did).toEqual([]);
  });

  it("G33 mounts its own again, checked before and grown after, without formatting", () => {
    const result = run({ blkid: holds("ext4", labelOf(name)) });
    expect(result.status, result.stderr).toBe(0);
    expect(result.did.map((line) => line.split(" ")[0])).toEqual(["e2fsck", "mount", "resize2fs", "setpriv", "tini"]);
  });

  it.each([
    ["another workspace's label", holds("ext4", labelOf("namzu-ws-two")), "another workspace's"],
    ["no label", holds("ext4", ""), "another workspace's"],
    ["another file system", holds("xfs", labelOf(name)), "holds xfs"],
    ["a partition table", holds("", ""), "no file system"],
    ["a label that cannot be read", 'case "$*" in *TYPE*) echo ext4; exit 0;; esac; exit 2', "label"],
  ])("G33 stops the pod on %s, and touches nothing", (_, blkid, says) => {
    const result = run({ blkid });
    expect(result.status).toBe(stopped);
    expect(result.stderr).toContain(says);
    expect(result.did).toEqual([]);
  });

  it("G33 a named device that is missing, or is none, or has no owner, stops the pod", () => {
    const real = { blkid: "exit 2", stat: 'exec /usr/bin/stat "$@"' };
    expect(run(real, { HOLDFAST_DISK_DEVICE: "/dev/no-such-disk" })).toMatchObject({ status: stopped, did: [] });
    expect(run(real)).toMatchObject({
      status: stopped,
      did: [],
      stderr: expect.stringContaining("not a block device"),
    });
    expect(run(real, { HOLDFAST_DISK_DEVICE: "" })).toMatchObject({ status: stopped, did: [] });
    expect(run({ blkid: "exit 2" }, { HOLDFAST_DISK_NAME: "" })).toMatchObject({ status: stopped, did: [] });
  });

  it.each([
    [0, true],
    [1, true],
    [2, false],
    [4, false],
    [8, false],
    [12, false],
    [128, false],
  ])("G33 with e2fsck's answer %i it goes on: %s", (code, goesOn) => {
    const result = run({ blkid: holds("ext4", labelOf(name)), e2fsck: `exit ${code}` });
    expect(result.status).toBe(goesOn ? 0 : stopped);
    expect(result.did.some((line) => line.startsWith("mount"))).toBe(goesOn);
    expect(result.stdout).toBe(goesOn ? "agent runs\n" : "");
  });

  it("G33 stops the pod when it cannot be mounted, or formatted; one that cannot be grown goes on as it is", () => {
    const ours = { blkid: holds("ext4", labelOf(name)) };
    expect(run({ ...ours, mount: "exit 32" })).toMatchObject({ status: stopped, stdout: "" });
    expect(run({ blkid: "exit 2", "mkfs.ext4": "exit 1" })).toMatchObject({ status: stopped, stdout: "" });
    expect(run({ ...ours, resize2fs: "exit 1" })).toMatchObject({ status: 0, stdout: "agent runs\n" });
  });

  it("G33 without a device it only gives privileges away", () => {
    const work = directory();
    const { HOLDFAST_DISK_DEVICE: _, ...env } = { HOLDFAST_DISK_DEVICE: "", PATH: process.env.PATH };
    const bin = join(work, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "tini"), '#!/bin/sh\nshift; exec "$@"\n', { mode: 0o755 });
    const result = spawnSync(entrypoint, ["cat", "/proc/self/status"], {
      encoding: "utf8",
      env: { ...env, PATH: `${bin}:${process.env.PATH}` },
    });
    expect(result.status, result.stderr).toBe(0);
    expect(result.stdout).toMatch(/^NoNewPrivs:\t1$/m);
    if (process.getuid?.() !== 0) return; // Whoever is nobody has nothing more to give.
    expect(result.stdout).toMatch(/^Uid:\t1001\t1001\t1001\t1001$/m);
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
      expect(result.stdout).toMatch(new RegExp(`^${set}:\t0000000000000000$`, "m"));
    }
  });
});

/** A loop device on a file; undefined where there are none. */
function attach(file: string): string | undefined {
  const { status, stdout } = spawnSync("losetup", ["--find", "--show", file], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

const mayLoop = ((): boolean => {
  if (process.getuid?.() !== 0) return false;
  const work = mkdtempSync(join(tmpdir(), "holdfast-loop-"));
  const device = attach(disk(join(work, "probe"), mebibyte));
  if (device !== undefined) spawnSync("losetup", ["--detach", device]);
  rmSync(work, { recursive: true });
  const needed = ["mkfs.ext4", "e2fsck", "resize2fs", "blkid", "setpriv", "unshare"];
  return (
    device !== undefined && needed.every((program) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0)
  );
})();

/** Growing a mounted ext4 needs it. */
const sysResource = 24n;
const mayGrow =
  ((BigInt(`0x${/^CapEff:\s+(\w+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0"}`) >> sysResource) &
    1n) ===
  1n;

describe.skipIf(!mayLoop)("on a real block device (skipped where there are no loop devices)", () => {
  function stage(bytes = 64 * mebibyte) {
    const work = directory();
    const file = disk(join(work, "disk"), bytes);
    const device = attach(file);
    if (device === undefined) throw new Error("no loop device any more");
    onTestFinished(() => {
      spawnSync("losetup", ["--detach", device]);
    });
    const bin = join(work, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "tini"), '#!/bin/sh\nshift; exec "$@"\n', { mode: 0o755 });
    const root = join(work, "workspace");
    const boot = (script: string, of = name) =>
      // A mount namespace of its own stands for the pod: what is mounted there goes with it.
      spawnSync("unshare", ["--mount", entrypoint, "sh", "-c", script], {
        encoding: "utf8",
        env: {
          PATH: `${bin}:${process.env.PATH}`,
          HOLDFAST_WORKSPACE_ROOT: root,
          HOLDFAST_DISK_DEVICE: device,
          HOLDFAST_DISK_NAME: of,
        },
      });
    return { file, device, boot, root };
  }

  it("G33 an empty disk becomes the workspace's, keeps its files over pods, and is nobody else's", () => {
    const { file, boot, root } = stage();
    const first = boot(
      `id -u; grep -E '^(Cap|NoNewPrivs)' /proc/self/status; grep ' ${root} ' /proc/mounts; echo kept > ${root}/file && sync`,
    );
    expect(first.status, first.stderr).toBe(0);
    expect(first.stdout).toMatch(/^1001\n/);
    expect(first.stdout).toContain("CapEff:\t0000000000000000");
    expect(first.stdout).toContain("CapBnd:\t0000000000000000");
    expect(first.stdout).toContain("NoNewPrivs:\t1");
    for (const option of ["noatime", "nodev", "nosuid"]) expect(first.stdout).toContain(option);

    const before = createHash("sha256").update(readFileSync(file)).digest("hex");
    const foreign = boot("echo runs", "namzu-ws-two");
    expect(foreign).toMatchObject({ status: stopped, stdout: "" });
    expect(createHash("sha256").update(readFileSync(file)).digest("hex")).toBe(before);
    expect(boot(`cat ${root}/file`).stdout).toBe("kept\n");
  });

  it.skipIf(!mayGrow)("G33 a disk that was made larger is grown (skipped without CAP_SYS_RESOURCE)", () => {
    const { file, device, boot, root } = stage();
    const blocks = `stat -f -c %b ${root}`;
    const small = Number(boot(blocks).stdout);
    const fd = openSync(file, "r+");
    ftruncateSync(fd, 128 * mebibyte);
    closeSync(fd);
    expect(spawnSync("losetup", ["--set-capacity", device]).status).toBe(0);
    expect(Number(boot(blocks).stdout)).toBeGreaterThan(1.7 * small);
  });

  it.skipIf(mayGrow)(
    "G33 a disk that may not be grown goes on with the size that it has (skipped with CAP_SYS_RESOURCE)",
    () => {
      const { file, device, boot, root } = stage();
      expect(boot(`echo kept > ${root}/file`).status).toBe(0);
      const fd = openSync(file, "r+");
      ftruncateSync(fd, 128 * mebibyte);
      closeSync(fd);
      expect(spawnSync("losetup", ["--set-capacity", device]).status).toBe(0);
      expect(boot(`cat ${root}/file`)).toMatchObject({ status: 0, stdout: "kept\n" });
    },
  );

  it("G33 another content, known to blkid or not, is left as it is", () => {
    const { file, device, boot } = stage();
    const swap = spawnSync("mkswap", [device], { encoding: "utf8" });
    expect(swap.status, swap.stderr).toBe(0);
    const before = readFileSync(file);
    expect(boot("echo runs")).toMatchObject({ status: stopped, stdout: "" });
    expect(readFileSync(file).equals(before)).toBe(true);
    const fd = openSync(file, "r+");
    writeSync(fd, Buffer.alloc(mebibyte), 0, mebibyte, 0);
    writeSync(fd, Buffer.from("a month of work"), 0, 15, 4_096);
    closeSync(fd);
    expect(spawnSync("blkid", ["-p", device]).status).toBe(2);
    const unknown = readFileSync(file);
    expect(boot("echo runs")).toMatchObject({ status: stopped, stdout: "" });
    expect(readFileSync(file).equals(unknown)).toBe(true);
  });
});

describe("the image", () => {
  it("has an entrypoint that may be executed", () => {
    expect(existsSync(entrypoint)).toBe(true);
    expect(statSync(entrypoint).mode & 0o111).toBe(0o111);
  });
});
