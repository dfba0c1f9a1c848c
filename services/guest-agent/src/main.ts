import { agentStopWatchdogMs } from "@holdfast/contract";
import { startAgent } from "./agent.ts";
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
    setTimeout(() => process.exit(0), agentStopWatchdogMs).unref();
    agent.stop().then(
      () => process.exit(0),
      (error) => {
        console.error("stopping:", error);
        process.exit(0);
      },
    );
  });
  console.error(`serving on ${config.host}:${agent.port}, boot ${config.bootId}, root ${config.workspaceRoot}`);
} catch (error) {
  console.error(`the guest agent does not start:\n${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
