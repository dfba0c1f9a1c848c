import { isObject, type JsonObject, listIn } from "../../../json.ts";
import { required } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";

export const networkPolicyRules: KindRules = {
  withDefaults: (policy) => (isObject(policy.spec) ? { ...policy, spec: completed(policy.spec) } : policy),
  validate: ({ spec }) => (isObject(spec) ? [] : [required("spec")]),
};

/** Without types a policy is about ingress, and about egress too where it has rules for it. */
function completed(spec: JsonObject): JsonObject {
  const policyTypes = listIn(spec, "egress").length > 0 ? ["Ingress", "Egress"] : ["Ingress"];
  const rules = ["ingress", "egress"].flatMap((member): [string, unknown][] => {
    const given = spec[member];
    return Array.isArray(given) ? [[member, given.map(withPortProtocols)]] : [];
  });
  return {
    ...spec,
    podSelector: spec.podSelector ?? {},
    policyTypes: spec.policyTypes ?? policyTypes,
    ...Object.fromEntries(rules),
  };
}

function withPortProtocols(rule: unknown): unknown {
  if (!isObject(rule) || !Array.isArray(rule.ports)) return rule;
  const ports = rule.ports.map((port) => (isObject(port) ? { protocol: "TCP", ...port } : port));
  return { ...rule, ports };
}
