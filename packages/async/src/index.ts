export * from "./backoff.ts";
export * from "./broadcast.ts";
export * from "./clock.ts";
export * from "./deadline.ts";
export * from "./serial-queue.ts";
export * from "./single-flight.ts";
export * from "./slots.ts";
