import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { goBuild } from "./go-build.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-go-build-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Stands in for the Go tool: `script` is what `go build` does. */
async function fakeGo(script: string): Promise<string> {
  const go = join(folder, "go");
  await writeFile(go, `#!/bin/sh\n${script}\n`);
  await chmod(go, 0o755);
  return go;
}

async function lives(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined); // gone
  return stat !== undefined && !/\) Z /.test(stat);
}

describe("a build by the Go tool", () => {
  it("tells how far it is while it says nothing by itself, and ends with its compilers when it is given up", async () => {
    const go = await fakeGo(
      `echo "go: downloading example.com/m v1" >&2; echo example.com/m/p >&2; sleep 1000 & echo $! > ${folder}/pid; wait`,
    );
    const giveUp = new AbortController();
    const said: string[] = [];
    const say = (line: string) => void said.push(line);
    const build = goBuild(go, [], folder, { signal: giveUp.signal, say, tellEveryMs: 20 });
    await expect.poll(() => said.at(-1), { timeout: 15_000 }).toMatch("1 modules, 1 packages; last: example.com/m/p");
    const compiler = Number.parseInt(await readFile(join(folder, "pid"), "utf8"), 10);
    expect(await lives(compiler)).toBe(true);
    giveUp.abort(new Error("late"));
    await expect(build).rejects.toThrow("late");
    await expect.poll(() => lives(compiler), { timeout: 15_000 }).toBe(false);
  });

  it("that fails says what the Go tool said last", async () => {
    const go = await fakeGo("echo one >&2; echo two >&2; exit 7");
    const build = goBuild(go, [], folder, { signal: new AbortController().signal, say: () => {} });
    await expect(build).rejects.toThrow("go build ended with 7: one\ntwo");
  });
});
