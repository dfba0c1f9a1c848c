import type { Stage } from "./stage.ts";

/** What a cluster may lack; everything needs its API. */
export type Part =
  /** The garbage collector: dependents go with their owners. */
  | "gc"
  /** The namespace controller: a namespace's content goes with it. */
  | "namespaces"
  /** PVC protection: a claim in use stays. */
  | "claim-protection"
  /** The agent-sandbox controller. */
  | "controller"
  /** A node that runs pods with the suite's image. */
  | "node"
  /** A way to have the history compacted. */
  | "compaction"
  /** The caller authenticates by a bearer token. */
  | "token";

/** One behaviour that the product relies on. */
export interface ConformanceCase {
  readonly id: string;
  readonly title: string;
  /** Where the behaviour is known from. */
  readonly source: string;
  readonly needs?: readonly Part[];
  /** Throws where the cluster behaves otherwise. */
  run(stage: Stage): Promise<void>;
}

/** For behaviour of the API server and its own controllers. */
export const fromKubernetes = "recorded from kube-apiserver 1.36.3";

/** Where in agent-sandbox's source a behaviour is decided. */
const controllerSources = {
  "2.1": "k8s/crds/agents.x-k8s.io_sandboxes.yaml",
  "2.2": "k8s/crds/extensions.agents.x-k8s.io_sandboxtemplates.yaml",
  "3.1": "controllers/sandbox_controller.go: Reconcile, reconcileChildResources",
  "3.2": "controllers/sandbox_controller.go: reconcilePod, buildPodLabels; names, labels and owners",
  "3.3": "controllers/sandbox_controller.go: reconcilePVCs",
  "3.4": "controllers/sandbox_controller.go: reconcileService",
  "3.5": "controllers/sandbox_controller.go: computeConditions, updateStatus",
  "3.6": "controllers/sandbox_controller.go: reconcilePod; modes and states of the pod",
  "3.7": "controllers/sandbox_controller.go: handleSandboxExpiry; expiry and deletion",
  "3.8": "controllers/sandbox_controller.go: the order of writes",
} as const;

/** For behaviour of the Sandbox controller, read in its source and recorded from it. */
export const fromController = (topic: keyof typeof controllerSources): string =>
  `agent-sandbox v0.5.6, ${controllerSources[topic]}`;
