export { type Agent, startAgent } from "./agent.ts";
export { type AgentConfig, readConfig } from "./config.ts";
