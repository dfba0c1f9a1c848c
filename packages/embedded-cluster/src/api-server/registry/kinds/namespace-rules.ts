import { isObject } from "../../../json.ts";
import type { KindRules } from "./kind-rules.ts";

/** The finalizer in `spec` that keeps a namespace until it is empty. */
export const namespaceFinalizer = "kubernetes";

export const namespaceRules: KindRules = {
  withDefaults: (namespace) => ({
    ...namespace,
    metadata: {
      ...namespace.metadata,
      labels: { ...namespace.metadata.labels, "kubernetes.io/metadata.name": namespace.metadata.name },
    },
    spec: isObject(namespace.spec) ? namespace.spec : {},
  }),
  initialised: (namespace) => ({
    ...namespace,
    spec: { finalizers: [namespaceFinalizer] },
    status: { phase: "Active" },
  }),
};
