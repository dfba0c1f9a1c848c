import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, listIn, valueAt } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { required } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";

/** Keeps a claim until no pod uses it, as the real cluster's storage-object-in-use protection does. */
export const claimProtectionFinalizer = "kubernetes.io/pvc-protection";

export const claimRules: KindRules = {
  withDefaults: (claim) =>
    isObject(claim.spec) ? { ...claim, spec: { volumeMode: "Filesystem", ...claim.spec } } : claim,
  initialised: (claim) => ({
    ...claim,
    metadata: {
      ...claim.metadata,
      finalizers: [...new Set([...(claim.metadata.finalizers ?? []), claimProtectionFinalizer])],
    },
    status: { phase: "Pending" },
  }),
  validate: specCauses,
};

function specCauses(claim: KubeObject): StatusCause[] {
  if (!isObject(claim.spec)) return [required("spec")];
  const causes: StatusCause[] = [];
  if (listIn(claim.spec, "accessModes").length === 0) {
    causes.push(required("spec.accessModes", "at least 1 access mode is required"));
  }
  if (valueAt(claim.spec, "resources.requests.storage") === undefined) {
    causes.push(required("spec.resources[storage]"));
  }
  return causes;
}
