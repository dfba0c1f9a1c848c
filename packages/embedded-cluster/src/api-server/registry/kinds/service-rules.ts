import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, listIn, stringIn } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { duplicate, invalidValue, labelRule, required } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";

/** Only headless Services are served: nothing here could carry traffic to a cluster IP. */
export const serviceRules: KindRules = {
  withDefaults: (service) => (isObject(service.spec) ? { ...service, spec: completed(service) } : service),
  initialised: (service) => ({ ...service, status: { loadBalancer: {} } }),
  validate: (service) =>
    stringIn(service.spec, "clusterIP") === "None"
      ? portCauses(listIn(service.spec, "ports"))
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

const portName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/u;

function portCauses(ports: readonly unknown[]): StatusCause[] {
  const seen = new Set<string>();
  const names = new Set<string>();
  return ports.flatMap((item, index): StatusCause[] => {
    const { port, protocol, name } = isObject(item) ? item : {};
    const at = `spec.ports[${index}]`;
    const causes: StatusCause[] = [];
    if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65_535) {
      causes.push(invalidValue(`${at}.port`, port ?? 0, "must be between 1 and 65535, inclusive"));
    }
    if (name === undefined || name === "") {
      if (ports.length > 1) causes.push(required(`${at}.name`));
    } else if (typeof name !== "string" || name.length > 63 || !portName.test(name)) {
      causes.push(invalidValue(`${at}.name`, name, labelRule));
    } else if (names.has(name)) {
      causes.push(duplicate(`${at}.name`, name));
    }
    names.add(String(name));
    if (seen.has(`${protocol}/${port}`)) causes.push(duplicate(at, { port, protocol }));
    seen.add(`${protocol}/${port}`);
    return causes;
  });
}
