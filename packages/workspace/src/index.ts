export * from "./ports/cluster.ts";
export * from "./ports/guest.ts";
