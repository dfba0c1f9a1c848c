import { isObject, listIn, stringIn } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import type { KindRules } from "./kind-rules.ts";

/** Only headless Services are served: nothing here could carry traffic to a cluster IP. */
export const serviceRules: KindRules = {
  withDefaults: (service) => (isObject(service.spec) ? { ...service, spec: completed(service) } : service),
  initialised: (service) => ({ ...service, status: { loadBalancer: {} } }),
  validate: (service) =>
    stringIn(service.spec, "clusterIP") === "None"
      ? []
      : [
          {
            reason: "FieldValueForbidden",
            field: "spec.clusterIP",
            message: 'Forbidden: the embedded cluster serves headless Services only (clusterIP "None")',
          },
        ],
};

function completed(service: KubeObject): unknown {
  if (!isObject(service.spec)) return service.spec;
  const ports = listIn(service.spec, "ports").map((port) =>
    isObject(port) ? { protocol: "TCP", targetPort: port.port, ...port } : port,
  );
  const headless = stringIn(service.spec, "clusterIP") === "None" ? { clusterIPs: ["None"] } : {};
  return {
    type: "ClusterIP",
    sessionAffinity: "None",
    internalTrafficPolicy: "Cluster",
    ipFamilies: ["IPv4"],
    ipFamilyPolicy: "SingleStack",
    ...headless,
    ...service.spec,
    ...(ports.length === 0 ? {} : { ports }),
  };
}
