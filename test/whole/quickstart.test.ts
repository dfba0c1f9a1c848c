import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dataFolder, startService, webTargetOf } from "./harness.ts";

const root = dirname(dirname(import.meta.dirname));

/** The lines of every block that the page says is run. */
function linesOf(page: string): string[] {
  const text = readFileSync(join(root, "docs", page), "utf8");
  return [...text.matchAll(/<!-- run line by line -->\n```sh\n([\s\S]*?)```/g)].flatMap((block) =>
    (block[1] ?? "").split("\n").filter((line) => line.trim() !== ""),
  );
}

describe("pages whose lines are run", () => {
  let folder: Awaited<ReturnType<typeof dataFolder>>;
  let service: Awaited<ReturnType<typeof startService>>;
  let bin: string;

  beforeAll(async () => {
    folder = await dataFolder();
    service = await startService(join(folder.path, "data"));
    bin = join(folder.path, "bin");
    await mkdir(bin);
    // What `npx holdfast` starts, without npx's own second of looking for it.
    const main = join(root, "services/cli/src/main.ts");
    const npx = `#!/bin/sh\n[ "$1" = holdfast ] || exit 2\nshift\nexec ${process.execPath} --disable-warning=ExperimentalWarning ${main} "$@"\n`;
    await writeFile(join(bin, "npx"), npx);
    await chmod(join(bin, "npx"), 0o755);
  });
  afterAll(async () => {
    await service.stop();
    await folder[Symbol.asyncDispose]();
  });

  function run(line: string): Promise<string> {
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, HOLDFAST_SERVER: service.target };
    const program = line.replaceAll("127.0.0.1:8080", webTargetOf(service));
    return new Promise((resolve, reject) => {
      execFile("sh", ["-c", program], { cwd: folder.path, env, timeout: 60_000 }, (error, stdout, stderr) =>
        error ? reject(new Error(`${line}\n${stderr}`, { cause: error })) : resolve(stdout),
      );
    });
  }

  it("holds the quickstart, line by line", async () => {
    const said: string[] = [];
    for (const line of linesOf("quickstart.md")) said.push(await run(line));
    const all = said.join("");
    expect(said.length).toBeGreaterThan(12);
    expect(all).toContain("hello from namzu-ws-first");
    expect(all).toContain("the command's own exit code: 3");
    expect(all.match(/WRITTEN HERE\n/g)).toHaveLength(2);
    expect(all).toMatch(/first +suspended/);
    expect(said.at(-1)).toBe("no workspaces\n");
  });

  it("runs the TypeScript client of the clients' page as it is written", async () => {
    const page = readFileSync(join(root, "docs/clients.md"), "utf8");
    const blocks = page.matchAll(/<!-- run by test\/whole\/quickstart.test.ts -->\n```ts\n([\s\S]*?)```/g);
    const said: string[] = [];
    for (const [, block = ""] of blocks) {
      const program = block
        .replaceAll("127.0.0.1:8080", webTargetOf(service))
        .replaceAll("127.0.0.1:50051", service.target);
      const child = spawn(process.execPath, ["--input-type=module-typescript", "-"], {
        cwd: join(root, "test"),
        stdio: ["pipe", "pipe", "inherit"],
      });
      child.stdin.end(program);
      const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
      expect(code).toBe(0);
      said.push(output);
    }
    expect(said).toEqual(["from a client\n", "hello world\nbye\nexit code 0\n"]);
  });

  it("holds the curl lines of the clients' page", async () => {
    const lines = linesOf("clients.md");
    expect(lines).toHaveLength(3);
    const said: string[] = [];
    for (const line of lines) said.push(await run(line));
    expect(JSON.parse(said[0] ?? "")).toMatchObject({ workspace: { state: "WORKSPACE_STATE_RUNNING" } });
    expect(JSON.parse(said[1] ?? "")).toMatchObject({ exited: { exitCode: 0 } });
    expect(JSON.parse(said[2] ?? "")).toMatchObject({
      workspaces: expect.arrayContaining([expect.objectContaining({ workspaceId: "hello" })]),
    });
  });
});
