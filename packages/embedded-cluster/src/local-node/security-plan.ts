import { isRecord, type JsonRecord, recordOf, textsOf } from "./json-shape.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/**
 * Refuses what asks for more rights than this node gives: a container that was told it would be root, and is not, fails
 * later and elsewhere. What takes rights away is done in any case, to all of them.
 */
export function refusePrivileges(context: JsonRecord, where: string): void {
  if (context.privileged === true) throw new UnsupportedPodError(`${where}.privileged is not supported`);
  const added = textsOf(recordOf(context.capabilities).add);
  if (added.length > 0)
    throw new UnsupportedPodError(`${where}.capabilities.add is not supported: ${added.join(", ")}`);
  if (context.runAsUser === 0) throw new UnsupportedPodError(`${where}.runAsUser 0: no container runs as root here`);
}

const podMembers = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"];

/** The same of a pod. */
export function refusePodPrivileges(spec: JsonRecord): void {
  for (const member of podMembers)
    if (spec[member] === true) throw new UnsupportedPodError(`spec.${member} is not supported`);
  refusePrivileges(isRecord(spec.securityContext) ? spec.securityContext : {}, "spec.securityContext");
}
