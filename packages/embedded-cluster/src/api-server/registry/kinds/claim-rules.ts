import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, type JsonObject, listIn, valueAt } from "../../../json.ts";
import { amountOf } from "../../../quantity.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { forbiddenField, Undecodable, unsupportedValue } from "../../refusals.ts";
import { goKindOf } from "../go-json.ts";
import { invalidValue, required } from "../metadata-rules.ts";
import { canonicalQuantity, quantityRule } from "../quantity.ts";
import type { KindRules } from "./kind-rules.ts";

/** Keeps a claim until no pod uses it, as the real cluster's storage-object-in-use protection does. */
export const claimProtectionFinalizer = "kubernetes.io/pvc-protection";

const self = { kind: "PersistentVolumeClaim", version: "v1" };

export const claimRules: KindRules = {
  withDefaults: (claim) =>
    isObject(claim.spec)
      ? { ...claim, spec: withCanonicalRequests({ volumeMode: "Filesystem", ...withNames(claim.spec) }) }
      : claim,
  initialised: (claim) => ({
    ...claim,
    metadata: {
      ...claim.metadata,
      finalizers: [...new Set([...(claim.metadata.finalizers ?? []), claimProtectionFinalizer])],
    },
    status: { phase: "Pending" },
  }),
  validate: (claim, old) => [...specCauses(claim), ...(old === undefined ? [] : fixedCauses(claim, old))],
  forbids: (claim, old) =>
    amountOf(requestedOf(claim)) > amountOf(requestedOf(old))
      ? "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
      : undefined,
};

/** Whose volume it is to be is decided by these: whatever is no text must not pass for none. */
function withNames(spec: JsonObject): JsonObject {
  for (const member of ["volumeName", "storageClassName"]) {
    const value = spec[member] ?? "";
    if (typeof value === "string") continue;
    const path = `PersistentVolumeClaimSpec.spec.${member}`;
    throw new Undecodable(
      self,
      `json: cannot unmarshal ${goKindOf(value)} into Go struct field ${path} of type string`,
    );
  }
  return spec;
}

/** Amounts are stored as the real server writes them: 1024Mi becomes 1Gi. */
function withCanonicalRequests(spec: JsonObject): JsonObject {
  const requests = valueAt(spec, "resources.requests");
  if (!isObject(requests) || !isObject(spec.resources)) return spec;
  const canonical = Object.fromEntries(
    Object.entries(requests).map(([resource, amount]) => {
      if (Number.isNaN(amountOf(amount))) throw new Undecodable(self, quantityRule);
      return [resource, canonicalQuantity(amount)];
    }),
  );
  return { ...spec, resources: { ...spec.resources, requests: canonical } };
}

const accessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

const immutableRule =
  "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/** The volume may be filled in once; a bound claim's size is for whoever resizes (`forbids`), and never less than there is. */
function fixedCauses(claim: KubeObject, old: KubeObject): StatusCause[] {
  const before = isObject(old.spec) ? old.spec : {};
  const after = isObject(claim.spec) ? claim.spec : {};
  const isBound = valueAt(old, "status.phase") === "Bound";
  const fixed = (spec: JsonObject): JsonObject => {
    const { volumeName, ...rest } = isBound ? withoutStorage(spec) : spec;
    return { ...rest, ...((before.volumeName ?? "") === "" ? {} : { volumeName }) };
  };
  const causes = isDeepStrictEqual(fixed(after), fixed(before)) ? [] : [forbiddenField("spec", immutableRule)];
  const [wanted, had] = [amountOf(requestedOf(claim)), amountOf(requestedOf(old))];
  if (wanted < had && wanted <= amountOf(valueAt(old, "status.capacity.storage") ?? "0") && isBound)
    causes.push(forbiddenField("spec.resources.requests.storage", "field can not be less than status.capacity"));
  return causes;
}

function withoutStorage(spec: JsonObject): JsonObject {
  const requests = valueAt(spec, "resources.requests");
  if (!isObject(spec.resources) || !isObject(requests)) return spec;
  return { ...spec, resources: { ...spec.resources, requests: { ...requests, storage: "" } } };
}

function requestedOf(claim: KubeObject): unknown {
  return valueAt(claim, "spec.resources.requests.storage");
}

function specCauses(claim: KubeObject): StatusCause[] {
  if (!isObject(claim.spec)) return [required("spec")];
  const causes: StatusCause[] = [];
  if (listIn(claim.spec, "accessModes").length === 0) {
    causes.push(required("spec.accessModes", "at least 1 access mode is required"));
  }
  for (const mode of listIn(claim.spec, "accessModes")) {
    if (!accessModes.includes(String(mode))) causes.push(unsupportedValue("spec.accessModes", mode, accessModes));
  }
  const storage = valueAt(claim.spec, "resources.requests.storage");
  if (storage === undefined) causes.push(required("spec.resources[storage]"));
  else if (amountOf(storage) <= 0)
    causes.push(invalidValue("spec.resources[storage]", storage, "must be greater than zero"));
  const volumeModes = ["Block", "Filesystem"];
  const { volumeMode } = claim.spec;
  if (!volumeModes.includes(String(volumeMode))) {
    causes.push(unsupportedValue("spec.volumeMode", volumeMode, volumeModes));
  }
  return causes;
}
