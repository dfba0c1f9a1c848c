import { join } from "node:path";
import type { AgentRunOptions } from "./agent-run.ts";

const root = join(import.meta.dirname, "../..");

/** How to run the agent from its source with one of its guards taken out as it is loaded; nothing on disk changes. */
export function brokenAgent(guard: string): AgentRunOptions {
  return {
    nodeArgs: ["--disable-warning=ExperimentalWarning", "--import", join(import.meta.dirname, "break-agent.ts")],
    entry: join(root, "services/guest-agent/src/main.ts"),
    env: { HOLDFAST_WITHOUT_GUARD: guard },
  };
}
