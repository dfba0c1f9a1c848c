import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { expect, it, onTestFinished } from "vitest";
import { agentProcess, soon } from "../testing/agent-process.testing.ts";
import { canMount, deadMount } from "../testing/dead-mount.testing.ts";

it.runIf(canMount)(
  "G3 a disk that does not answer is left out, holds no answer up, and keeps no agent from its exit",
  async () => {
    const base = mkdtempSync(join(tmpdir(), "holdfast-dead-disk-"));
    onTestFinished(() => rmSync(base, { recursive: true, force: true }));
    const [living, dead, root] = [join(base, "living"), join(base, "dead"), join(base, "root")];
    mkdirSync(living);
    symlinkSync(living, root);
    const { link, child, exited } = await agentProcess({ HOLDFAST_WORKSPACE_ROOT: root });
    const ask = (includeUse: boolean) => link.call(AgentService.method.health, { includeUse }, { within: soon() });
    expect((await ask(true)).use?.disk?.totalBytes).toBeGreaterThan(0n);
    expect((await ask(false)).use).toBeUndefined();

    await deadMount(dead);
    rmSync(root);
    symlinkSync(dead, root);
    // More than Node's pool has threads: each would hold one.
    for (let round = 0; round < 2; round += 1) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask(true)));
      expect(answers.map(({ serving, use }) => [serving, use?.disk])).toEqual(Array(8).fill([true, undefined]));
    }
    expect((await ask(false)).serving).toBe(true);
    child.kill("SIGTERM");
    expect(await exited).toBe("SIGKILL"); // Its own: an exit would wait for the thread.
  },
);
