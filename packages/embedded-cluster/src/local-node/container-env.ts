import type { KubeObject } from "../resource-api.ts";
import type { ContainerPlan } from "./container-plan.ts";
import { recordOf, textOf } from "./json-shape.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/** What the downward API tells a container about itself and its place. */
export interface PodPlace {
  readonly nodeName: string;
  readonly podIp: string;
  readonly hostIp: string;
}

/** The environment and command that a container gets, expanded as Kubernetes does. */
export interface ContainerCall {
  readonly env: ReadonlyMap<string, string>;
  readonly command: readonly string[];
}

/** The user that containers run as. */
export const podUser = { name: "agent", uid: 1001, gid: 1001, home: "/home/agent" } as const;

const basePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Works out environment and command; `defaultCommand` stands for the image's own. */
export function containerCallOf(
  pod: KubeObject,
  plan: ContainerPlan,
  place: PodPlace,
  defaultCommand: readonly string[],
): ContainerCall {
  const env = new Map([
    ["PATH", basePath],
    ["HOME", podUser.home],
    ["HOSTNAME", pod.metadata.name],
  ]);
  for (const entry of plan.env)
    env.set(entry.name, entry.t === "value" ? expand(entry.value, env) : fieldOf(pod, place, entry.path));
  for (const [name, value] of env)
    if (value.includes("\0")) throw new UnsupportedPodError(`env ${name} holds a NUL character`);

  const given = plan.command.length === 0 ? [...defaultCommand, ...plan.args] : [...plan.command, ...plan.args];
  const command = given.map((word) => expand(word, env));
  if (command.some((word) => word.includes("\0"))) throw new UnsupportedPodError("command holds a NUL character");
  if (command[0]?.includes("=")) throw new UnsupportedPodError(`a program with "=" in its path cannot be started`);
  return { env, command };
}

/** Replaces `$(NAME)` by the variable; `$$` is a literal `$`; an unknown name stays as it is written. */
export function expand(text: string, env: ReadonlyMap<string, string>): string {
  return text.replace(/\$\$|\$\(([^)]*)\)/g, (whole, name: string | undefined) =>
    name === undefined ? "$" : (env.get(name) ?? whole),
  );
}

function fieldOf(pod: KubeObject, place: PodPlace, path: string): string {
  switch (path) {
    case "metadata.name":
      return pod.metadata.name;
    case "metadata.namespace":
      return pod.metadata.namespace ?? "";
    case "metadata.uid":
      return pod.metadata.uid ?? "";
    case "spec.serviceAccountName":
      return textOf(recordOf(pod.spec).serviceAccountName) ?? "default";
    case "spec.nodeName":
      return place.nodeName;
    case "status.podIP":
    case "status.podIPs":
      return place.podIp;
    case "status.hostIP":
    case "status.hostIPs":
      return place.hostIp;
  }
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path);
  if (keyed === null) throw new UnsupportedPodError(`fieldRef ${path} is not supported`);
  const map = keyed[1] === "labels" ? pod.metadata.labels : pod.metadata.annotations;
  return map?.[keyed[2] ?? ""] ?? "";
}
