import type { KubeObject, ObjectMeta, OwnerReference } from "../../resource-api.ts";
import { foregroundFinalizer, orphanFinalizer, withFinalizers } from "../registry/deletion.ts";
import type { Registry } from "../registry/registry.ts";
import type { Owned } from "../registry/target.ts";
import { findKind } from "../resource-types.ts";

/**
 * Deletes what has lost its owners and carries out foreground and orphan deletion, by uid, as the garbage collector of
 * a real cluster does. Level-triggered: `look` at any uid, any number of times.
 */
export class GarbageCollector {
  readonly #registry: Registry;
  readonly #lookLater: (uid: string) => void;

  constructor(registry: Registry, lookLater: (uid: string) => void) {
    this.#registry = registry;
    this.#lookLater = lookLater;
  }

  /** Notes which objects a change may concern. `before` is the object before it, where there was one. */
  noticed(object: KubeObject, before: KubeObject | undefined, deleted: boolean): void {
    const { uid = "", ownerReferences = [] } = object.metadata;
    const owners = [...ownerReferences, ...(before?.metadata.ownerReferences ?? [])];
    if (deleted) {
      for (const dependent of this.#registry.dependentsOf(uid)) this.#lookLater(dependent.object.metadata.uid ?? "");
    } else if (ownerReferences.length > 0 || isWaiting(object.metadata)) {
      this.#lookLater(uid);
    }
    // An owner that waits for its dependents may have been waiting for this one.
    for (const owner of owners) this.#lookLater(owner.uid);
  }

  look(uid: string): void {
    const found = this.#registry.findByUid(uid);
    if (found === undefined) return;
    const { metadata } = found.object;
    if (has(metadata, orphanFinalizer)) this.#orphanDependents(found);
    else if (has(metadata, foregroundFinalizer)) this.#deleteDependents(found);
    else if (metadata.deletionTimestamp === undefined) this.#deleteIfDangling(found);
  }

  #orphanDependents(owner: Owned): void {
    const { uid = "" } = owner.object.metadata;
    for (const dependent of this.#registry.dependentsOf(uid)) this.#dropOwners(dependent, new Set([uid]));
    this.#dropFinalizer(owner, orphanFinalizer);
  }

  #deleteDependents(owner: Owned): void {
    const { uid = "" } = owner.object.metadata;
    const dependents = this.#registry.dependentsOf(uid);
    const blocking = dependents.filter(({ object }) => blocks(object.metadata, uid));
    if (blocking.length === 0) this.#dropFinalizer(owner, foregroundFinalizer);
    for (const { object } of dependents) this.#lookLater(object.metadata.uid ?? "");
  }

  #deleteIfDangling(item: Owned): void {
    const { metadata } = item.object;
    const { ownerReferences = [], uid = "" } = metadata;
    if (ownerReferences.length === 0) return;
    const standings = ownerReferences.map((owner) => ({ owner, standing: this.#standingOf(owner, item) }));
    const lost = standings.filter(({ standing }) => standing !== "solid");
    if (lost.length === 0) return;
    if (lost.length < standings.length) {
      this.#dropOwners(item, new Set(lost.map(({ owner }) => owner.uid)));
      return;
    }
    const isAwaited = lost.some(({ standing }) => standing === "awaiting");
    const foreground = isAwaited && this.#registry.dependentsOf(uid).length > 0;
    this.#registry.delete(item.target, {
      preconditions: { uid },
      ...(foreground ? { propagationPolicy: "Foreground" as const } : {}),
    });
  }

  /** An owner counts by its uid and only in reach: the same namespace, or cluster-scoped. */
  #standingOf(reference: OwnerReference, item: Owned): "solid" | "awaiting" | "dangling" {
    // Of a kind that is not served here nothing is known, so nothing is deleted for it.
    if (findKind(reference.apiVersion, reference.kind) === undefined) return "solid";
    const owner = this.#registry.findByUid(reference.uid);
    if (owner === undefined) return "dangling";
    if (owner.target.namespace !== "" && owner.target.namespace !== item.target.namespace) return "dangling";
    return has(owner.object.metadata, foregroundFinalizer) ? "awaiting" : "solid";
  }

  #dropOwners(item: Owned, uids: ReadonlySet<string>): void {
    this.#registry.changeMetadata(item.target, (metadata) => {
      const { ownerReferences = [], ...rest } = metadata;
      const kept = ownerReferences.filter((owner) => !uids.has(owner.uid));
      return kept.length === 0 ? rest : { ...rest, ownerReferences: kept };
    });
  }

  #dropFinalizer(item: Owned, finalizer: string): void {
    this.#registry.changeMetadata(item.target, (metadata) =>
      withFinalizers(
        metadata,
        (metadata.finalizers ?? []).filter((name) => name !== finalizer),
      ),
    );
  }
}

/** Tells whether an object is being deleted in the way that a finalizer asks for. */
function has(metadata: ObjectMeta, finalizer: string): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(finalizer);
}

function isWaiting(metadata: ObjectMeta): boolean {
  return has(metadata, foregroundFinalizer) || has(metadata, orphanFinalizer);
}

function blocks(metadata: ObjectMeta, owner: string): boolean {
  return (metadata.ownerReferences ?? []).some((own) => own.uid === owner && own.blockOwnerDeletion === true);
}
