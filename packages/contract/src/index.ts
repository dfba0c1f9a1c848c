export * from "./features.ts";
export * from "./guest-limits.ts";
export * from "./guest-link.ts";
export * from "./ids.ts";
export * from "./limits.ts";
export * from "./object-names.ts";
export * from "./reasons.ts";
export * from "./timings.ts";
