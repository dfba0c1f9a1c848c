export type { AgentIdentity } from "./handshake-agent.ts";
export type { LinkTarget } from "./handshake-caller.ts";
export * from "./link-client.ts";
export * from "./link-errors.ts";
export * from "./link-server.ts";
export * from "./router.ts";
export type { AgentStream, CallerEnd } from "./stream-agent.ts";
export type { CallerStream, StreamListener } from "./stream-caller.ts";
export type { Upload } from "./upload.ts";
