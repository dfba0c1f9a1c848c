import { isDeepStrictEqual } from "node:util";
import { isApiStatus } from "../api-status-error.ts";
import { isObject, listIn, objectIn, stringIn } from "../json.ts";
import type { KubeObject } from "../resource-api.ts";
import type { Pass } from "./children.ts";
import {
  controllerReference,
  isAdoptable,
  nameHashLabel,
  notAdoptable,
  ownedByOther,
  ownershipOf,
  refOf,
  services,
} from "./names.ts";
import type { SandboxSpec } from "./sandbox-spec.ts";
import { type ServicePort, servicePorts } from "./service-ports.ts";

/**
 * Brings the headless Service to what `spec.service` asks for: true makes and repairs it, false deletes an owned one,
 * unset keeps what is there. Returns the Service that the Sandbox has, if any.
 */
export async function reconcileService(pass: Pass, spec: SandboxSpec): Promise<KubeObject | undefined> {
  const { sandbox, cluster, hash } = pass;
  const found = cluster.services.get(sandbox.metadata.namespace ?? "", sandbox.metadata.name);
  if (found === undefined) return spec.service === true ? create(pass, spec) : undefined;
  const ownership = ownershipOf(found, sandbox);
  if (spec.service === false) {
    if (ownership === "ours") await deleteService(pass, found);
    return undefined;
  }
  if (ownership === "foreign") throw ownedByOther("service", found, sandbox);
  if (ownership === "ours") return repair(pass, spec, found);
  if (spec.service === undefined) return undefined;
  if (!isAdoptable(found, hash)) throw notAdoptable("service", found);
  return adopt(pass, spec, found);
}

/** Deletes the Service; that it is gone already is as good. */
export async function deleteService(pass: Pass, service: KubeObject): Promise<void> {
  await pass.cluster.api.delete(refOf(services, service)).catch((error: unknown) => {
    if (!isApiStatus(error, 404)) throw error;
  });
}

async function create(pass: Pass, spec: SandboxSpec): Promise<KubeObject> {
  const { sandbox, hash, cluster } = pass;
  const namespace = sandbox.metadata.namespace ?? "";
  const ports = servicePorts(spec);
  const service = await cluster.api.create(services, namespace, {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: sandbox.metadata.name,
      namespace,
      labels: { [nameHashLabel]: hash },
      ownerReferences: [controllerReference(sandbox)],
    },
    spec: { clusterIP: "None", selector: { [nameHashLabel]: hash }, ...(ports.length === 0 ? {} : { ports }) },
  });
  cluster.services.learn(service);
  return service;
}

async function repair(pass: Pass, spec: SandboxSpec, service: KubeObject): Promise<KubeObject> {
  const { hash, cluster } = pass;
  const selector = { [nameHashLabel]: hash };
  const ports = servicePorts(spec);
  const isLabelled = service.metadata.labels?.[nameHashLabel] === hash;
  const isSelecting = isDeepStrictEqual(objectIn(service.spec, "selector") ?? {}, selector);
  const isPorted = spec.service !== true || isDeepStrictEqual(portsOf(service), ports);
  if (isLabelled && isSelecting && isPorted) return service;
  return cluster.api.patch(refOf(services, service), "application/merge-patch+json", {
    ...(isLabelled ? {} : { metadata: { labels: selector } }),
    spec: {
      ...(isSelecting ? {} : { selector: selectorPatch(service, selector) }),
      ...(isPorted ? {} : { ports: ports.length === 0 ? null : ports }),
    },
  });
}

function adopt(pass: Pass, spec: SandboxSpec, service: KubeObject): Promise<KubeObject> {
  const { sandbox, hash, cluster } = pass;
  const clusterIp = stringIn(service.spec, "clusterIP") ?? "";
  if (clusterIp !== "None" && clusterIp !== "") {
    throw new Error(
      `cannot adopt service "${service.metadata.name}": ClusterIP is "${clusterIp}" (expected "None", field is immutable)`,
    );
  }
  const selector = { [nameHashLabel]: hash };
  const ports = servicePorts(spec);
  return cluster.api.patch(refOf(services, service), "application/merge-patch+json", {
    metadata: {
      labels: selector,
      ownerReferences: [...(service.metadata.ownerReferences ?? []), controllerReference(sandbox)],
    },
    spec: { selector: selectorPatch(service, selector), ports: ports.length === 0 ? null : ports },
  });
}

/** A merge patch keeps members that it does not name, so foreign ones are taken out by name. */
function selectorPatch(service: KubeObject, selector: Record<string, string>): Record<string, string | null> {
  const removed = Object.keys(objectIn(service.spec, "selector") ?? {}).map((key) => [key, null]);
  return { ...Object.fromEntries(removed), ...selector };
}

function portsOf(service: KubeObject): ServicePort[] {
  return listIn(service.spec, "ports")
    .filter(isObject)
    .map((port) => ({
      name: stringIn(port, "name") ?? "",
      protocol: stringIn(port, "protocol") ?? "",
      port: Number(port.port),
      targetPort: Number(port.targetPort),
    }));
}
