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
  | "compaction";

/** One behaviour that the product relies on. */
export interface ConformanceCase {
  readonly id: string;
  readonly title: string;
  /** Where the behaviour is known from: a section of docs/design/sandbox-controller-facts or a recording. */
  readonly source: string;
  readonly needs?: readonly Part[];
  /** Throws where the cluster behaves otherwise. */
  run(stage: Stage): Promise<void>;
}

/** For behaviour of the API server and its own controllers. */
export const fromKubernetes = "recorded from kube-apiserver 1.36.3";

/** For behaviour of the Sandbox controller: the section of agent-sandbox's facts. */
export const fromController = (section: string): string => `agent-sandbox v0.5.6, facts §${section}`;
