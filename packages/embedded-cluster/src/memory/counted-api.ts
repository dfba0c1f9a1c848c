import type { ResourceApi, WatchEvent } from "../resource-api.ts";

/** An API that counts what passes through it: each request's beginning and end, and each event that a watch gave. */
export function countedApi(api: ResourceApi): { readonly api: ResourceApi; readonly moves: number } {
  let moves = 0;
  const counted = async <T>(work: Promise<T>): Promise<T> => {
    moves++;
    try {
      return await work;
    } finally {
      moves++;
    }
  };
  async function* watched(events: AsyncIterable<WatchEvent>): AsyncGenerator<WatchEvent> {
    for await (const event of events) {
      moves++;
      yield event;
    }
  }
  return {
    api: {
      get: (ref) => counted(api.get(ref)),
      list: (resource, namespace) => counted(api.list(resource, namespace)),
      create: (resource, namespace, object) => counted(api.create(resource, namespace, object)),
      patch: (ref, type, body, subresource) => counted(api.patch(ref, type, body, subresource)),
      delete: (ref, wish) => counted(api.delete(ref, wish)),
      bind: (pod, binding) => counted(api.bind(pod, binding)),
      watch: (resource, version, signal, namespace) => watched(api.watch(resource, version, signal, namespace)),
    },
    get moves() {
      return moves;
    },
  };
}
