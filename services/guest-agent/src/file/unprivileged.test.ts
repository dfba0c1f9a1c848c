import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileService } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { describe, expect, it } from "vitest";
import { type AgentProcess, agentProcess, soon } from "../testing/agent-process.testing.ts";

const uid = 1001;

/** Writes a file and waits for how it ends. */
async function write(agent: AgentProcess, path: string, content: string): Promise<Error | undefined> {
  const over = Promise.withResolvers<Error | undefined>();
  const listener = { message: () => undefined, data: () => undefined, over: over.resolve };
  const stream = await agent.link.open(FileService.method.write, { path }, listener, { within: soon() });
  stream.sendData(Buffer.from(content));
  stream.sendEof();
  return over.promise;
}

describe.skipIf(process.getuid?.() !== 0)("an agent without privileges, as in a pod", () => {
  it("replaces another user's file where it may, as its own and without the set-id bits", async () => {
    const agent = await agentProcess({}, uid);
    const path = join(agent.root, "tool");
    writeFileSync(path, "old");
    chmodSync(path, 0o6755);
    expect(await write(agent, "tool", "new")).toBeUndefined();
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(statSync(path)).toMatchObject({ uid, gid: uid, mode: 0o100755 });
  });

  it("says FILE_ACCESS_DENIED where it may not, and changes nothing", async () => {
    const agent = await agentProcess({}, uid);
    mkdirSync(join(agent.root, "roots"), { mode: 0o755 });
    writeFileSync(join(agent.root, "roots/file"), "old", { mode: 0o600 });
    expect(await write(agent, "roots/file", "new")).toMatchObject({ reason: "FILE_ACCESS_DENIED" });
    const over = Promise.withResolvers<Error | undefined>();
    const listener = { message: () => undefined, data: () => undefined, over: over.resolve };
    await agent.link.open(FileService.method.read, { path: "roots/file" }, listener, { within: soon() });
    expect(await over.promise).toMatchObject({ reason: "FILE_ACCESS_DENIED" });
    expect(readFileSync(join(agent.root, "roots/file"), "utf8")).toBe("old");
  });

  it("writes also in a directory that it may enter and write, and not list", async () => {
    const agent = await agentProcess({}, uid);
    const drop = join(agent.root, "drop");
    mkdirSync(drop);
    chownSync(drop, uid, uid);
    expect(await write(agent, "drop/file", "x")).toBeUndefined();
    chmodSync(drop, 0o300);
    expect(await write(agent, "drop/file", "y")).toMatchObject({ reason: "FLUSH_UNCONFIRMED" });
    expect(readFileSync(join(drop, "file"), "utf8")).toBe("y");
  });
});
