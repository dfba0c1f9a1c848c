export * from "./grpc-codes.ts";
export * from "./holdfast-error.ts";
export * from "./wire.ts";
