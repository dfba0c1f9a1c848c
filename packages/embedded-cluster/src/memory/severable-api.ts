import { LostReplyError } from "../faults/fate.ts";
import type { ResourceApi } from "../resource-api.ts";

/**
 * An API that one caller can be cut off from, as a kill of the caller does: whatever it waits for fails at once and it
 * sends nothing more. What it had sent may still be carried out.
 */
export function severableApi(api: ResourceApi): { readonly api: ResourceApi; sever(): void } {
  const severed = new AbortController();
  const untilSevered = <T>(begin: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const { signal } = severed;
      if (signal.aborted) return reject(new LostReplyError());
      const lost = (): void => reject(new LostReplyError());
      signal.addEventListener("abort", lost, { once: true });
      begin()
        .then(resolve, reject)
        .finally(() => signal.removeEventListener("abort", lost));
    });
  return {
    api: {
      get: (ref) => untilSevered(() => api.get(ref)),
      list: (resource, namespace) => untilSevered(() => api.list(resource, namespace)),
      create: (resource, namespace, object) => untilSevered(() => api.create(resource, namespace, object)),
      patch: (ref, type, body, subresource) => untilSevered(() => api.patch(ref, type, body, subresource)),
      delete: (ref, wish) => untilSevered(() => api.delete(ref, wish)),
      bind: (pod, binding) => untilSevered(() => api.bind(pod, binding)),
      watch: (resource, version, signal, namespace) =>
        api.watch(resource, version, AbortSignal.any([signal, severed.signal]), namespace),
    },
    sever: () => severed.abort(),
  };
}
