import { stringIn, valueAt } from "../../json.ts";
import type { DeleteWish, KubeObject, ObjectMeta } from "../../resource-api.ts";
import { preconditionFailed } from "../refusals.ts";
import type { ResourceType } from "../resource-types.ts";
import { rfc3339 } from "./timestamp.ts";

export const foregroundFinalizer = "foregroundDeletion";
export const orphanFinalizer = "orphan";

/** What a delete comes to: the object goes, or it stays with changed metadata (`object` is the whole new object). */
export type DeletionPlan = { readonly t: "remove" | "keep"; readonly object: KubeObject };

/** Throws 409 unless the preconditions hold. */
export function assertPreconditions(type: ResourceType, object: KubeObject, wish: DeleteWish): void {
  const { uid, resourceVersion } = wish.preconditions ?? {};
  const { metadata } = object;
  if (uid !== undefined && uid !== metadata.uid) {
    throw preconditionFailed(
      type,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid ?? ""}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw preconditionFailed(
      type,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion ?? ""}). The object might have been modified`,
    );
  }
}

/** Decides what a delete does to an object. Pure: `object` is not changed. */
export function planDeletion(type: ResourceType, object: KubeObject, wish: DeleteWish, now: Date): DeletionPlan {
  const finalizers = finalizersAfter(object.metadata.finalizers ?? [], wish);
  const grace = type.plural === "pods" ? podGraceSeconds(object, wish) : 0;
  // Only pods are marked before they go: the others just go.
  if (grace === 0 && finalizers.length === 0 && type.plural !== "pods") return { t: "remove", object };
  const metadata = { ...withFinalizers(object.metadata, finalizers), ...deletionStamp(object.metadata, grace, now) };
  const isOver = grace === 0 && finalizers.length === 0;
  return { t: isOver ? "remove" : "keep", object: { ...object, metadata } };
}

/** Tells whether an object that is being deleted has nothing left to wait for. */
export function isDeletionComplete(object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata;
  return deletionTimestamp !== undefined && (deletionGracePeriodSeconds ?? 0) === 0 && (finalizers ?? []).length === 0;
}

export function withFinalizers(metadata: ObjectMeta, finalizers: readonly string[]): ObjectMeta {
  const { finalizers: _, ...rest } = metadata;
  return finalizers.length === 0 ? rest : { ...rest, finalizers: [...finalizers] };
}

function finalizersAfter(finalizers: readonly string[], wish: DeleteWish): string[] {
  if (wish.propagationPolicy === undefined) return [...finalizers];
  const others = finalizers.filter((name) => name !== foregroundFinalizer && name !== orphanFinalizer);
  if (wish.propagationPolicy === "Foreground") return [...others, foregroundFinalizer];
  if (wish.propagationPolicy === "Orphan") return [...others, orphanFinalizer];
  return others;
}

/** A pod that no node runs, or that has ended, needs no grace. */
function podGraceSeconds(pod: KubeObject, wish: DeleteWish): number {
  const phase = valueAt(pod, "status.phase");
  if ((stringIn(pod.spec, "nodeName") ?? "") === "" || phase === "Succeeded" || phase === "Failed") return 0;
  // Who names no grace changes nothing of one that runs.
  const running = pod.metadata.deletionGracePeriodSeconds;
  if (wish.gracePeriodSeconds === undefined && running !== undefined) return running;
  const own = valueAt(pod, "spec.terminationGracePeriodSeconds");
  const wished = wish.gracePeriodSeconds ?? (typeof own === "number" ? own : 30);
  return wished < 0 ? 1 : wished;
}

/** The first delete sets the stamp; a later one may only shorten the grace. */
function deletionStamp(metadata: ObjectMeta, grace: number, now: Date): Partial<ObjectMeta> {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, generation } = metadata;
  if (deletionTimestamp === undefined) {
    return {
      deletionTimestamp: rfc3339(new Date(now.getTime() + grace * 1000)),
      deletionGracePeriodSeconds: grace,
      ...(generation === undefined ? {} : { generation: generation + 1 }),
    };
  }
  if (grace >= deletionGracePeriodSeconds) return {};
  const asked = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  return { deletionTimestamp: rfc3339(new Date(asked + grace * 1000)), deletionGracePeriodSeconds: grace };
}
