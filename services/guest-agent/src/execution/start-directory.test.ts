import { join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { describe, expect, it } from "vitest";
import { type AgentProcess, agentProcess, soon } from "../testing/agent-process.testing.ts";
import { canMount, deadMount } from "../testing/dead-mount.testing.ts";
import { refusalOf, script, start } from "../testing/followed-execution.testing.ts";
import { openTerminal } from "../testing/followed-session.testing.ts";

const ask = ({ link }: AgentProcess) => link.call(AgentService.method.health, {}, { within: soon() });
const refusal = (call: Promise<unknown>) => call.catch((error) => error);

describe.runIf(canMount)(
  "a directory on a file system that does not answer (skipped where none can be mounted)",
  () => {
    it("is refused by name in time, and holds nothing else up meanwhile", async () => {
      const agent = await agentProcess();
      const { link, root } = agent;
      await deadMount(join(root, "dead"));
      const begun = performance.now();
      const refused = refusalOf(start(link, "dead", { command: "true", cwd: "dead" }));
      const opened = refusal(openTerminal(link, "dead", { command: "true", cwd: "dead/below" }));
      await ask(agent);
      expect(await (await script(link, "root", "echo works")).end()).toBe(0);
      expect(performance.now() - begun).toBeLessThan(4_000);
      expect(await refused).toMatchObject({
        reason: "INVALID_REQUEST",
        metadata: { field: "cwd", cause: "unanswered" },
      });
      expect(await opened).toMatchObject({
        reason: "INVALID_REQUEST",
        metadata: { field: "cwd", cause: "unanswered" },
      });
      // At once from here on: another look would be another thread that waits.
      const again = performance.now();
      expect(await refusalOf(start(link, "dead", { command: "true", cwd: "dead/other" }))).toMatchObject({
        metadata: { cause: "unanswered" },
      });
      expect(performance.now() - again).toBeLessThan(4_000);
      expect(await ask(agent)).toMatchObject({ runningExecutions: 0, runningSessions: 0 });
    });

    it("leaves a way for others, until there are two; then directories are not looked at, by name, and the root goes on", async () => {
      const agent = await agentProcess();
      const { link, root } = agent;
      const giveUp = [await deadMount(join(root, "one")), await deadMount(join(root, "two"))];
      const below = (id: string) => start(link, id, { command: "true", cwd: "." + "/living" });
      expect(await (await script(link, "make", "mkdir living")).end()).toBe(0);
      expect(await refusalOf(start(link, "one", { command: "true", cwd: "one" }))).toMatchObject({
        reason: "INVALID_REQUEST",
      });
      expect(await (await below("between")).end()).toBe(0);
      expect(await refusalOf(start(link, "two", { command: "true", cwd: "two" }))).toMatchObject({
        reason: "INVALID_REQUEST",
      });
      expect(await refusalOf(below("below"))).toMatchObject({
        reason: "EXECUTION_CAPACITY",
        metadata: { cause: "looks-held" },
      });
      expect(await refusal(openTerminal(link, "below", { command: "true", cwd: "living" }))).toMatchObject({
        reason: "SESSION_CAPACITY",
        metadata: { cause: "looks-held" },
      });
      expect(await (await script(link, "root", "exit 5")).end()).toBe(5);
      giveUp[0]?.(); // The kernel answers, and looks go on.
      await expect.poll(async () => (await below(`free-${performance.now()}`)).over).toBeUndefined();
    });

    it("keeps no agent from exiting", async () => {
      const agent = await agentProcess();
      await deadMount(join(agent.root, "dead"));
      await refusalOf(start(agent.link, "dead", { command: "true", cwd: "dead" }));
      agent.child.kill("SIGTERM");
      expect(await agent.exited).toBe("SIGKILL"); // Its own: an exit would wait for the thread.
    });

    it("a shell there is passed over", async () => {
      const { link, root } = await agentProcess();
      await deadMount(join(root, "dead"));
      const session = await openTerminal(link, "shell", { env: { SHELL: join(root, "dead/zsh") } });
      expect(session.pid).toBeGreaterThan(0n);
    });
  },
);
