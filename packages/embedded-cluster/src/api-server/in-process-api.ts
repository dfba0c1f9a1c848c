import type {
  DeleteWish,
  KubeObject,
  ObjectRef,
  PatchType,
  ResourceApi,
  ResourceRef,
  WatchEvent,
} from "../resource-api.ts";
import { badRequest, notServed } from "./refusals.ts";
import { parse } from "./registry/object-text.ts";
import type { Registry } from "./registry/registry.ts";
import type { Target } from "./registry/target.ts";
import { findType, type ResourceType } from "./resource-types.ts";

const watchBatch = 100;

/** ResourceApi over the registry of this process: the same rules as over HTTP, without the wire. */
export function inProcessApi(registry: Registry): ResourceApi {
  return {
    get: async (ref) => registry.get(targetOf(ref)),
    list: async (resource, namespace) => {
      const page = registry.list(typeOf(resource), namespace);
      return { items: Array.from(page.bodies(), parse), resourceVersion: String(page.resourceVersion) };
    },
    create: async (resource, namespace, object) => {
      const type = typeOf(resource);
      return registry.create(type, type.namespaced ? namespace : "", asSent(object));
    },
    patch: async (ref: ObjectRef, type: PatchType, body: unknown, subresource?: "status"): Promise<KubeObject> =>
      registry.patch(targetOf(ref), type, asSent(body), subresource),
    delete: async (ref: ObjectRef, wish?: DeleteWish): Promise<void> => {
      registry.delete(targetOf(ref), wish);
    },
    bind: async (pod, { uid, nodeName }) =>
      registry.bind(targetOf(pod), { metadata: { name: pod.name, uid }, target: { kind: "Node", name: nodeName } }),
    watch: (resource, resourceVersion, signal, namespace) =>
      watchEvents(registry, typeOf(resource), readVersion(resourceVersion), signal, namespace),
  };
}

/** What would have arrived over the wire: a member that is undefined is absent. */
function asSent(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

async function* watchEvents(
  registry: Registry,
  type: ResourceType,
  rv: number,
  signal: AbortSignal,
  namespace: string | undefined,
): AsyncGenerator<WatchEvent> {
  const cursor = registry.watch(type, namespace, { t: "after", rv });
  try {
    while (!signal.aborted) {
      for (const event of cursor.read(watchBatch)) {
        yield { type: event.type, object: parse(event.body) };
        if (signal.aborted) return;
      }
      await cursor.changed(signal);
    }
  } finally {
    cursor.close();
  }
}

function typeOf(resource: ResourceRef): ResourceType {
  const type = findType(resource);
  if (type === undefined) throw notServed(`${resource.plural}.${resource.group}/${resource.version}`);
  return type;
}

function targetOf(ref: ObjectRef): Target {
  const type = typeOf(ref.resource);
  return { type, namespace: type.namespaced ? ref.namespace : "", name: ref.name };
}

function readVersion(text: string): number {
  const rv = Number(text);
  if (!Number.isSafeInteger(rv) || rv < 0)
    throw badRequest(`Invalid value: ${JSON.stringify(text)}: not a resourceVersion`);
  return rv;
}
