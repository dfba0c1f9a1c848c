import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type { JsonValue } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dataFolder, startService } from "./harness.ts";
import { ReflectedService } from "./reflected-call.ts";

const root = dirname(dirname(import.meta.dirname));
const readme = readFileSync(join(root, "README.md"), "utf8");

/** The code block that follows a marker comment. */
function blockAfter(marker: RegExp, language: string): string {
  const found = new RegExp(`${marker.source}[^\\n]*-->\\n\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(readme);
  if (!found?.[1]) throw new Error(`README.md has no ${language} block after ${marker}`);
  return found[1];
}

/** The grpcurl lines, as words. Quotes are single ones, as in the README. */
const commands = blockAfter(/replayed through reflection/, "sh")
  .split("\n")
  .filter((line) => line.startsWith("grpcurl "))
  .map((line) => [...line.matchAll(/'([^']*)'|(\S+)/g)].map((word) => word[1] ?? word[2] ?? ""));

function wordsOf(command: readonly string[]): { path: string; request: JsonValue } {
  const data = command.indexOf("-d");
  return { path: command.at(-1) ?? "", request: data < 0 ? {} : JSON.parse(command[data + 1] ?? "{}") };
}

const grpcurl = findGrpcurl();

function findGrpcurl(): string | undefined {
  try {
    return execFileSync("sh", ["-c", "command -v grpcurl"], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

describe("the README", () => {
  let folder: Awaited<ReturnType<typeof dataFolder>>;
  let service: Awaited<ReturnType<typeof startService>>;

  beforeAll(async () => {
    folder = await dataFolder();
    service = await startService(folder.path);
  });
  afterAll(async () => {
    await service.stop();
    await folder[Symbol.asyncDispose]();
  });

  it("holds its tour when it is replayed through reflection, line by line", async () => {
    using reflected = new ReflectedService(service.target);
    expect(commands.length).toBeGreaterThanOrEqual(9);
    const said: string[] = [];
    for (const command of commands) {
      const { path, request } = wordsOf(command);
      const answers = path === "list" ? await reflected.list() : await reflected.call(path, request);
      said.push(JSON.stringify(answers));
    }
    const all = said.join("\n");
    expect(said[0]).toContain("holdfast.v1.WorkspaceService");
    expect(said[0]).toContain("grpc.health.v1.Health");
    expect(all).toContain("WORKSPACE_STATE_SUSPENDED");
    expect(all).toContain(Buffer.from("kept\n").toString("base64"));
    expect(all.match(/"exitCode":0/g)).toHaveLength(3);
  });

  it("describes health and the details of errors through reflection, as a strict client needs them", async () => {
    using reflected = new ReflectedService(service.target);
    expect(await reflected.call("grpc.health.v1.Health/Check", {})).toEqual([{ status: "SERVING" }]);
    expect(await reflected.knows("google.rpc.ErrorInfo")).toBe(true);
    expect(await reflected.knows("google.rpc.NoSuchThing")).toBe(false);
  });

  it("lists the same through the older v1alpha reflection", async () => {
    using v1 = new ReflectedService(service.target);
    using alpha = new ReflectedService(service.target, "v1alpha");
    expect(await alpha.list()).toEqual(await v1.list());
  });

  it.skipIf(grpcurl === undefined)(
    "holds its tour with grpcurl itself (skipped where grpcurl is not installed)",
    async () => {
      for (const command of commands) {
        const argv = command.slice(1).map((word) => (word === "127.0.0.1:50051" ? service.target : word));
        const { stdout } = await promisify(execFile)(grpcurl ?? "", argv);
        expect(stdout).not.toBe("");
      }
    },
  );

  it("runs its TypeScript client as it is written", async () => {
    const program = blockAfter(/run by test/, "ts").replaceAll("127.0.0.1:50051", service.target);
    expect(program.trim().split("\n").length).toBeLessThanOrEqual(17);
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-"], {
      cwd: join(root, "test"),
      stdio: ["pipe", "pipe", "inherit"],
    });
    child.stdin.end(program);
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    expect(said).toBe("1\n2\n3\nexited with 0\n");
    expect(code).toBe(0);
  });
});
