import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memoryFilesOf, memoryGroupOf } from "./memory-group.ts";
import { readMemoryUse, useOf } from "./memory-use.ts";

const second = "30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate";
const first = (root: string) => `32 30 0:28 ${root} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory`;
const cpu = "31 30 0:27 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu";

describe("the control group of memory", () => {
  it.each([
    ["version 2, with a namespace", "0::/\n", second, { version: 2, folder: "/sys/fs/cgroup" }],
    [
      "version 1, with a namespace",
      "5:cpu:/\n4:memory:/\n",
      `${cpu}\n${first("/")}`,
      { version: 1, folder: "/sys/fs/cgroup/memory" },
    ],
    [
      "version 1, of which only its own is mounted",
      "4:hugetlb,memory:/kubepods/pod1/c1\n",
      first("/kubepods/pod1/c1"),
      { version: 1, folder: "/sys/fs/cgroup/memory" },
    ],
    [
      "both versions: memory is of version 1",
      "4:memory:/\n0::/\n",
      `${second}\n${first("/")}`,
      { version: 1, folder: "/sys/fs/cgroup/memory" },
    ],
    [
      "a mount with a blank in its path",
      "0::/\n",
      second.replace("/sys/fs/cgroup", "/my\\040groups"),
      { version: 2, folder: "/my groups" },
    ],
  ] as const)("is the container's own at the top of what it sees: %s", (_, groups, mounts, found) => {
    expect(memoryGroupOf(groups, mounts)).toEqual(found);
  });

  it.each([
    ["a process of a machine", "0::/user.slice/session-1.scope\n", second],
    ["a part of a container", "0::/init\n", second],
    ["a container that sees the whole machine's", "4:memory:/kubepods/pod1/c1\n", first("/")],
    ["no mount of it", "0::/\n", cpu],
    ["memory of version 1 that is not mounted, beside a mount of version 2", "4:memory:/\n0::/\n", second],
    ["nothing that can be read", "", ""],
    ["text that is something else", "hello\n::\n", " - \n- cgroup2"],
  ])("is not known of %s", (_, groups, mounts) => {
    expect(memoryGroupOf(groups, mounts)).toBeUndefined();
  });
});

describe("what a control group uses", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-group-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const groupWith = async (version: 1 | 2, texts: Partial<Record<keyof ReturnType<typeof memoryFilesOf>, string>>) => {
    const group = { version, folder } as const;
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
    const texts = { used: "1000\n", limit: "4096\n", details, members };
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
    expect(await readMemoryUse({ HOLDFAST_POD: "p" })).toBeUndefined();
  });
});
