import { isObject } from "../../../json.ts";
import type { KindRules } from "./kind-rules.ts";
import { unknownMembers } from "./unknown-members.ts";

/** The finalizer in `spec` that keeps a namespace until it is empty. */
export const namespaceFinalizer = "kubernetes";

const members = ["apiVersion", "kind", "metadata", "spec", "status"];

export const namespaceRules: KindRules = {
  unknownFields: (body) => [
    ...unknownMembers(body, members),
    ...unknownMembers(isObject(body) ? body.spec : undefined, ["finalizers"], "spec."),
    ...unknownMembers(isObject(body) ? body.status : undefined, ["phase", "conditions"], "status."),
  ],
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
