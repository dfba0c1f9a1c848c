import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ensurePrograms, NoGoError, type ProgramFolder } from "./programs.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-programs-"));
  vi.stubEnv("XDG_CACHE_HOME", folder);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

/** Stands in for the Go tool: makes an empty file per program, but for those whose path matches `broken`. */
async function fakeGo(broken: string): Promise<void> {
  const source = join(folder, "source");
  await mkdir(join(source, "k8s", "crds"), { recursive: true });
  await writeFile(join(source, "k8s", "crds", "sandboxes.yaml"), "definition");
  await writeFile(join(source, "k8s", "rbac.generated.yaml"), "role");
  const go = join(folder, "go");
  await writeFile(
    go,
    `#!/bin/sh
echo "$1" >> ${folder}/calls
case "$1" in
list) echo ${source};;
build)
  while [ "$1" != -o ]; do shift; done
  into=$2; shift 2
  for path in "$@"; do
    case "$path" in *${broken}*) echo "$path does not compile" >&2; exit 1;; esac
    name=\${path%/v3}; : > "$into/\${name##*/}"
  done;;
esac
`,
  );
  await chmod(go, 0o755);
  vi.stubEnv("HOLDFAST_GO", go);
}

async function ensured(
  signal = new AbortController().signal,
): Promise<{ programs: ProgramFolder; said: string; builds: number }> {
  const said: string[] = [];
  await writeFile(join(folder, "calls"), "");
  const programs = await ensurePrograms({ signal, say: (line) => void said.push(line) });
  const builds = (await readFile(join(folder, "calls"), "utf8")).split("\n").filter((call) => call === "build").length;
  return { programs, said: said.join("\n"), builds };
}

describe("the programs of a real cluster", () => {
  it("are built once, and found again without the Go tool", async () => {
    await fakeGo("nothing");
    const first = await ensured();
    expect(first.builds).toBe(1);
    for (const program of ["etcd", "apiServer", "controllerManager", "sandboxController"] as const)
      expect(first.programs.file(program)).toMatch(first.programs.path);
    expect(await readFile(join(first.programs.path, "crds", "sandboxes.yaml"), "utf8")).toBe("definition");
    vi.stubEnv("HOLDFAST_GO", join(folder, "no-go"));
    expect(await ensured()).toMatchObject({ said: "", builds: 0 });
  });

  it("that cannot be built are named, cost the others nothing, and are tried again", async () => {
    await fakeGo("kube-controller-manager");
    const { programs, said } = await ensured();
    expect(said).toMatch(/kube-controller-manager could not be built: .*does not compile/);
    expect(programs.file("controllerManager")).toBeUndefined();
    for (const program of ["etcd", "apiServer", "sandboxController"] as const)
      expect(programs.file(program)).toBeDefined();
    expect((await ensured()).builds).toBeGreaterThan(0);
    await fakeGo("nothing");
    expect((await ensured()).programs.file("controllerManager")).toBeDefined();
    expect(await readdir(join(folder, "holdfast", "cluster"))).toHaveLength(1); // no draft is left
  });

  it("leave no draft, and are not tried one by one, when their build is given up", async () => {
    await fakeGo("kube-controller-manager");
    await expect(ensured(AbortSignal.abort(new Error("late")))).rejects.toThrow("late");
    expect(await readdir(join(folder, "holdfast", "cluster"))).toEqual([]);
  });

  it("are not to be had without the Go tool, which is said as such", async () => {
    vi.stubEnv("HOLDFAST_GO", join(folder, "no-go"));
    await expect(ensured()).rejects.toThrow(NoGoError);
  });
});
