import { agentStopWatchdogMs } from "@holdfast/contract";
import { type Agent, startAgent } from "./agent.ts";
import { readConfig } from "./config.ts";

// A defect in one call must not take the month's processes of others with it.
process.on("uncaughtException", (error) => console.error("uncaught:", error));
// A limit on the size of files is an error of the write that meets it, not the end of the agent.
process.on("SIGXFSZ", () => undefined);
process.on("unhandledRejection", (reason) => console.error("unhandled rejection:", reason));

try {
  const config = readConfig(process.env);
  const agent = await startAgent(config, process.env);
  let stopping = false;
  process.on("SIGTERM", () => {
    if (stopping) return; // A second SIGTERM changes nothing (G26).
    stopping = true;
    console.error("stopping: ends what runs, writes the disk out, then exits");
    setTimeout(() => leave(agent), agentStopWatchdogMs).unref();
    agent.stop().then(
      () => leave(agent),
      (error) => {
        console.error("stopping:", error);
        leave(agent);
      },
    );
  });
  console.error(`serving on ${config.host}:${agent.port}, boot ${config.bootId}, root ${config.workspaceRoot}`);
} catch (error) {
  console.error(`the guest agent does not start:\n${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}

/** An exit waits for the agent's threads, and one in a call that the kernel does not answer would keep it for ever. */
function leave(agent: Agent): void {
  if (agent.isStarting()) {
    console.error("stopping: the kernel does not answer what it was asked; the agent ends all the same");
    process.kill(process.pid, "SIGKILL");
  } else process.exit(0);
}
