import { execFile } from "node:child_process";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { memoryFilesOf, memoryGroupOf } from "./memory-group.ts";
import { readMemoryUse, useOf } from "./memory-use.ts";

const second = "30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate";
const first = (root: string) => `32 30 0:28 ${root} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory`;
const cpu = "31 30 0:27 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu";

const uid = "5d2a1f0e-9a3f-4d8e-b0a5-3f1f6f0c7a11";
const plain = `/kubepods/burstable/pod${uid}/c1`;
const slice = `/kubepods.slice/kubepods-pod${uid.replaceAll("-", "_")}.slice/cri-containerd-c1.scope`;

describe("the control group of memory", () => {
  it.each([
    ["version 2, at the top", "0::/\n", second, { version: 2, folder: "/sys/fs/cgroup", isNamed: false }],
    [
      "version 2, at the top of a mount with a blank in its path",
      "0::/\n",
      second.replace("/sys/fs/cgroup", "/my\\040groups"),
      { version: 2, folder: "/my groups", isNamed: false },
    ],
    [
      "version 2, named after the pod, in the machine's",
      `0::${slice}\n`,
      second,
      { version: 2, folder: `/sys/fs/cgroup${slice}`, isNamed: true },
    ],
    [
      "version 1, named after the pod, of which only its own is mounted",
      `5:cpu:/\n4:hugetlb,memory:${plain}\n`,
      `${cpu}\n${first(plain)}`,
      { version: 1, folder: "/sys/fs/cgroup/memory", isNamed: true },
    ],
    [
      "version 1, named as systemd does, in the machine's; beside version 2",
      `4:memory:${slice}\n0::/\n`,
      `${second}\n${first("/")}`,
      { version: 1, folder: `/sys/fs/cgroup/memory${slice}`, isNamed: true },
    ],
  ] as const)("can be the container's own: %s", (_, groups, mounts, found) => {
    expect(memoryGroupOf(groups, mounts, uid)).toEqual(found);
  });

  it.each([
    ["a process of a machine", "0::/user.slice/session-1.scope\n", second],
    ["a part of a container", "0::/init\n", second],
    ["a part of a named container", `4:memory:${plain}/inner\n`, first("/")],
    ["another pod's", `4:memory:${plain.replace("5d2a", "5d2b")}\n`, first("/")],
    ["the top of version 1, where strangers are not shown", "4:memory:/\n", first("/")],
    ["only its own that is not named, in version 1", "4:memory:/docker/c1\n", first("/docker/c1")],
    ["a mount of something else of the tree", `4:memory:${plain}\n`, first("/system.slice")],
    ["no mount of it", "0::/\n", cpu],
    ["memory of version 1 that is not mounted, beside a mount of version 2", "4:memory:/\n0::/\n", second],
    ["nothing that can be read", "", ""],
    ["text that is something else", "hello\n::\n", " - \n- cgroup2"],
  ])("is not known of %s", (_, groups, mounts) => {
    expect(memoryGroupOf(groups, mounts, uid)).toBeUndefined();
  });

  it("is not known by a uid that is so short that it may be in a name by chance", () => {
    expect(memoryGroupOf("4:memory:/pods/p\n", first("/"), "p")).toBeUndefined();
  });
});

describe("what a control group uses", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-group-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const groupWith = async (version: 1 | 2, texts: Partial<Record<keyof ReturnType<typeof memoryFilesOf>, string>>) => {
    const group = { version, folder, isNamed: version === 1 } as const;
    const files = memoryFilesOf(group);
    for (const name of ["used", "limit", "details", "members"] as const) {
      const text = texts[name];
      if (text !== undefined) await writeFile(files[name], text);
    }
    return group;
  };
  const members = "1\n17\n";

  it("is read by version 2", async () => {
    const texts = { used: "1000\n", limit: "4096\n", details: "anon 1\ninactive_file 300\nactive_file 9\n", members };
    expect(await useOf(await groupWith(2, texts))).toEqual({
      usedBytes: 1000n,
      workingSetBytes: 700n,
      limitBytes: 4096n,
    });
  });

  it("is read by version 1, with what groups below it have", async () => {
    const details = "inactive_file 1\ntotal_inactive_file 300\n";
    const texts = { used: "1000\n", limit: "4096\n", details };
    expect(await useOf(await groupWith(1, texts))).toEqual({
      usedBytes: 1000n,
      workingSetBytes: 700n,
      limitBytes: 4096n,
    });
  });

  it.each([
    [2, "max\n"],
    [1, "9223372036854771712\n"],
    [2, "many\n"],
    [2, undefined],
  ] as const)("has no limit where none is set or can be read (version %i: %j)", async (version, limit) => {
    const told = await useOf(await groupWith(version, { used: "1000\n", members, ...(limit && { limit }) }));
    expect(told).toEqual({ usedBytes: 1000n });
  });

  it("is never less than nothing: its numbers are not of one moment", async () => {
    const texts = { used: "100\n", details: "inactive_file 300\n", members };
    expect(await useOf(await groupWith(2, texts))).toEqual({ usedBytes: 100n, workingSetBytes: 0n });
  });

  it.each([
    ["a member of another pid namespace", { used: "1000\n", members: "0\n1\n" }],
    ["members that cannot be read", { used: "1000\n" }],
    ["no members at all", { used: "1000\n", members: "" }],
    ["no use that can be read, as the machine's own group", { members }],
    ["a use that is no number", { used: "-1\n", members }],
  ])("is not known with %s", async (_, texts) => {
    expect(await useOf(await groupWith(2, texts))).toBeUndefined();
  });

  it("is not known in a pod that shares its node's group", async () => {
    expect(await readMemoryUse(uid, { HOLDFAST_POD: "p" })).toBeUndefined();
  });
});

/** A control group of this machine that is named after the pod and has a limit; undefined where none can be made. */
function madeGroup(limitBytes: bigint): string | undefined {
  for (const [top, limit] of [
    ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"],
    ["/sys/fs/cgroup", "memory.max"],
  ] as const) {
    const folder = join(top, `holdfast-test-${process.pid}-${uid}`);
    try {
      mkdirSync(folder);
    } catch {
      continue; // Not mounted, or not ours to change.
    }
    try {
      writeFileSync(join(folder, limit), String(limitBytes));
      return folder;
    } catch {
      rmdirSync(folder); // Groups, but none of memory.
    }
  }
  return undefined;
}

describe("a process in a control group of the kernel's own (skipped where none can be made)", () => {
  const limitBytes = 256n * 1024n ** 2n;
  const group = madeGroup(limitBytes);
  afterAll(() => {
    if (group !== undefined) rmdirSync(group);
  });

  it.runIf(group)("tells what it uses, and its limit", async () => {
    const read = `import(process.argv[1]).then(async ({ readMemoryUse }) => {
      const { usedBytes, workingSetBytes, limitBytes } = await readMemoryUse(process.argv[2]);
      console.log([usedBytes, workingSetBytes, limitBytes].join(" "));
    })`;
    const run = 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"';
    const node = [process.execPath, "--disable-warning=ExperimentalWarning", "-e", read];
    const { stdout } = await promisify(execFile)("sh", [
      ...["-c", run, "sh", group ?? "", ...node],
      ...[join(import.meta.dirname, "memory-use.ts"), uid],
    ]);
    const [used = 0n, inWork = 0n, limit] = stdout.trim().split(" ").map(BigInt);
    expect(limit).toBe(limitBytes);
    expect(used > 1024n ** 2n && used < limitBytes).toBe(true);
    expect(inWork > 0n && inWork <= used).toBe(true);
  });
});
