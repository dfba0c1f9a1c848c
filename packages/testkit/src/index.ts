export * from "./fake-cluster.ts";
export * from "./fake-cluster-objects.ts";
export * from "./fake-controller.ts";
export * from "./fake-guests.ts";
export * from "./fault-plan.ts";
export * from "./gate.ts";
export * from "./manual-clock.ts";
export * from "./workspace-stage.ts";
