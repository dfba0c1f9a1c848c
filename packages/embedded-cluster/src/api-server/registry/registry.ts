import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../api-status-error.ts";
import type { DeleteWish, KubeObject, ObjectMeta, PatchType } from "../../resource-api.ts";
import {
  alreadyExists,
  badRequest,
  forbidden,
  internalError,
  invalid,
  invalidPatch,
  namespaceTerminating,
  notFound,
  otherUid,
  staleResourceVersion,
  stillTerminating,
  tooLargeResourceVersion,
  Undecodable,
  unforeseen,
  versionRequired,
} from "../refusals.ts";
import { type ResourceType, storageNameOf } from "../resource-types.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { Change, ChangeType, ObjectKey, StoredObject } from "../store/rows.ts";
import { assertPreconditions, isDeletionComplete, planDeletion } from "./deletion.ts";
import { rulesOf } from "./kinds/kind-rules.ts";
import { type ListPage, type ListWish, listPage } from "./list-page.ts";
import { invalidValue, validateMetadata } from "./metadata-rules.ts";
import { readObject } from "./object-shape.ts";
import { parse, serialise } from "./object-text.ts";
import { newMetadata, withSpecOf, withStatusOf } from "./object-update.ts";
import { applyPatchTo } from "./patches.ts";
import { boundBy } from "./pod-binding.ts";
import { randomSuffix } from "./random-suffix.ts";
import { compileSelection, type Selection } from "./selectors.ts";
import { keyOf, namespaceType, type Owned, ownedOf, type Target } from "./target.ts";
import { rfc3339 } from "./timestamp.ts";
import { deletionStampCauses, finalizerCauses, otherName } from "./update-rules.ts";
import { WatchCursor, type WatchStart } from "./watch-cursor.ts";

/** Namespaces that cannot be deleted. */
const keptNamespaces = new Set(["default", "kube-system"]);

/**
 * The one registry behind HTTP and in-process callers: admission, defaulting, validation, versions, deletion. Calls
 * are synchronous and therefore serial. Every refusal is an ApiStatusError.
 */
export class Registry {
  readonly #store: ObjectStore;
  readonly #now: () => Date;
  readonly #listeners = new Set<(change: Change) => void>();
  #isDry = false;

  constructor(store: ObjectStore, now: () => Date) {
    this.#store = store;
    this.#now = now;
  }

  get revision(): number {
    return this.#store.revision;
  }

  /** Calls back, synchronously, after each change is committed. Returns the way to stop. */
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Does `work`. In a dry run nothing is written, and what it returns is what would have been. */
  inRun<T>(isDry: boolean, work: () => T): T {
    this.#isDry = isDry;
    try {
      return work();
    } finally {
      this.#isDry = false;
    }
  }

  get(target: Target): KubeObject {
    return this.#read(target).object;
  }

  create(type: ResourceType, namespace: string, body: unknown): KubeObject {
    const sent = readObject(type, body);
    const { metadata } = sent;
    if (metadata.namespace !== undefined && metadata.namespace !== namespace) {
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    }
    if (metadata.resourceVersion !== undefined) {
      throw unforeseen("resourceVersion should not be set on objects to be created");
    }
    const name = metadata.name === "" ? this.#generateName(type, namespace, metadata.generateName) : metadata.name;
    const uid = randomUUID();
    const rules = rulesOf(type);
    const { status: _, ...withoutStatus } = sent;
    const base: KubeObject = {
      ...(type.hasStatus && rules.createsWithStatus !== true ? withoutStatus : sent),
      apiVersion: sent.apiVersion,
      kind: sent.kind,
      metadata: newMetadata(type, { namespace, name, uid, now: this.#now() }, metadata),
    };
    const defaulted = rules.withDefaults?.(base) ?? base;
    const object = rules.initialised?.(defaulted) ?? defaulted;
    this.#assertValid(type, object, undefined);
    if (type.namespaced) this.#assertNamespaceTakes(type, namespace, name);
    const key = keyOf({ type, namespace, name });
    const standing = this.#store.get(key);
    if (standing !== undefined) {
      const isGoing = parse(standing.body).metadata.deletionTimestamp !== undefined;
      throw isGoing ? stillTerminating(type, name) : alreadyExists(type, name);
    }
    return this.#commit("ADDED", key, object, undefined);
  }

  update(target: Target, body: unknown, subresource?: "status"): KubeObject {
    const current = this.#read(target);
    const sent = readObject(target.type, body);
    if (sent.metadata.name !== "" && sent.metadata.name !== target.name) {
      throw otherName(sent.metadata.name, target.name);
    }
    if (target.type.custom && sent.metadata.resourceVersion === undefined) {
      throw versionRequired(target.type, target.name);
    }
    return this.#replace(target, current, sent, subresource);
  }

  /** `inspect` is shown what the patch has made of the object, before anything is dropped or checked. */
  patch(
    target: Target,
    type: PatchType,
    body: unknown,
    subresource?: "status",
    inspect?: (patched: unknown) => void,
  ): KubeObject {
    const current = this.#read(target);
    const patched = applyPatchTo(current.object, type, body);
    inspect?.(patched);
    try {
      const sent = readObject(target.type, patched);
      this.#assertSameUid(target, current.object, sent);
      return this.#replace(target, current, sent, subresource);
    } catch (error) {
      // The body was a patch that could be read: what cannot be is what it makes of the object.
      throw error instanceof Undecodable && !target.type.custom
        ? invalidPatch(JSON.stringify(patched), error.why)
        : error;
    }
  }

  /** Takes a Binding: gives a pod to a node. */
  bind(target: Target, body: unknown): void {
    const { stored, object } = this.#read(target);
    this.#settle(stored, object, boundBy(target, object, body, this.#now()));
  }

  /** Deletes, or begins to. `removed` tells whether the object is gone with this answer. */
  delete(target: Target, wish: DeleteWish = {}): { readonly object: KubeObject; readonly removed: boolean } {
    const { type, name } = target;
    if (type.kind === "Namespace" && keptNamespaces.has(name)) {
      throw forbidden(type, name, "this namespace may not be deleted");
    }
    const current = this.#read(target);
    assertPreconditions(type, current.object, wish);
    if (type.kind === "Namespace") return this.#deleteNamespace(current);
    const plan = planDeletion(type, current.object, wish, this.#now());
    if (plan.t === "remove") {
      return { object: this.#commit("DELETED", current.stored, plan.object, current.stored.body), removed: true };
    }
    if (isDeepStrictEqual(plan.object, current.object)) return { object: current.object, removed: false };
    return { object: this.#commit("MODIFIED", current.stored, plan.object, current.stored.body), removed: false };
  }

  /** Deletes what is selected and returns it. What goes meanwhile is passed over. */
  deleteCollection(
    type: ResourceType,
    namespace: string | undefined,
    selection: Selection,
    wish: DeleteWish,
  ): KubeObject[] {
    const { keys } = this.list(type, namespace, selection);
    return keys.map((key) => this.delete({ type, ...key }, wish).object);
  }

  list(type: ResourceType, namespace: string | undefined, wish: ListWish = {}): ListPage {
    return listPage(this.#store, type, namespace, wish);
  }

  /** Opens a cursor over the changes of one type. The caller closes it. */
  watch(type: ResourceType, namespace: string | undefined, start: WatchStart, selection: Selection = {}): WatchCursor {
    const known = start.t === "after" ? start.rv : start.t === "now" ? (start.notOlderThan ?? 0) : 0;
    if (known > this.#store.revision) throw tooLargeResourceVersion(known, this.#store.revision);
    return new WatchCursor({
      store: this.#store,
      onChange: (listener) => this.onChange(listener),
      resource: storageNameOf(type),
      namespace,
      matches: compileSelection(type, selection),
      start,
    });
  }

  /** Objects that name this uid as an owner. */
  dependentsOf(uid: string): Owned[] {
    return this.#store.dependentsOf(uid).map(ownedOf);
  }

  findByUid(uid: string): Owned | undefined {
    const stored = this.#store.getByUid(uid);
    return stored === undefined ? undefined : ownedOf(stored);
  }

  /** Objects that have an owner or are being deleted. */
  unsettledUids(): string[] {
    return this.#store.unsettledUids();
  }

  /** Objects of a type and namespace whose JSON holds a text; a cheap first sieve. */
  mentioning(type: ResourceType, namespace: string, wanted: string): KubeObject[] {
    return this.#store.mentioning(storageNameOf(type), namespace, wanted).map((stored) => parse(stored.body));
  }

  /** Some of the objects in a namespace that are not being deleted; none where all are. */
  standingIn(namespace: string, limit: number): Owned[] {
    return this.#store.standingInNamespace(namespace, limit).map(ownedOf);
  }

  /** Changes an object's metadata, past the rules that bind callers. For the cluster's own controllers. */
  changeMetadata(target: Target, change: (metadata: ObjectMeta) => ObjectMeta): void {
    const { stored, object } = this.#read(target);
    const changed = { ...object, metadata: change(object.metadata) };
    this.#settle(stored, object, changed);
  }

  /** Tells whether a namespace is being deleted. */
  isTerminating(namespace: string): boolean {
    const found = this.#store.get(keyOf({ type: namespaceType(), namespace: "", name: namespace }));
    return found !== undefined && parse(found.body).metadata.deletionTimestamp !== undefined;
  }

  /** Removes a namespace that is being deleted and is empty. */
  finishNamespace(name: string): void {
    const type = namespaceType();
    const { stored, object } = this.#read({ type, namespace: "", name });
    if (!isDeletionComplete(object) || this.#isInhabited(object)) return;
    this.#commit("DELETED", stored, object, stored.body);
  }

  #read(target: Target): { stored: StoredObject; object: KubeObject } {
    const stored = this.#store.get(keyOf(target));
    if (stored === undefined) throw notFound(target.type, target.name);
    return { stored, object: parse(stored.body) };
  }

  #generateName(type: ResourceType, namespace: string, prefix: string | undefined): string {
    if (prefix === undefined || prefix === "") return "";
    for (let attempt = 0; attempt < 8; attempt++) {
      const name = `${prefix.slice(0, 58)}${randomSuffix()}`;
      if (this.#store.get(keyOf({ type, namespace, name })) === undefined) return name;
    }
    throw alreadyExists(type, `${prefix}…`);
  }

  #assertNamespaceTakes(type: ResourceType, namespace: string, name: string): void {
    const found = this.#store.get(keyOf({ type: namespaceType(), namespace: "", name: namespace }));
    if (found === undefined) throw notFound(namespaceType(), namespace);
    if (parse(found.body).metadata.deletionTimestamp !== undefined) {
      throw namespaceTerminating(type, name, namespace);
    }
  }

  #replace(
    target: Target,
    current: { stored: StoredObject; object: KubeObject },
    sent: KubeObject,
    subresource: "status" | undefined,
  ): KubeObject {
    const { type, name } = target;
    const { stored, object: old } = current;
    const { resourceVersion, uid, namespace } = sent.metadata;
    if (namespace !== undefined && namespace !== target.namespace) {
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    }
    if (sent.metadata.name !== "" && sent.metadata.name !== name) throw otherName(sent.metadata.name, name);
    if (uid !== undefined && uid !== old.metadata.uid) {
      throw otherUid(type, target.namespace, name, uid, old.metadata.uid ?? "");
    }
    if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion)
      throw staleResourceVersion(type, name);

    const next = subresource === "status" ? withStatusOf(type, sent, old) : withSpecOf(type, sent, old);
    this.#assertValid(type, next, old, subresource === "status" ? [] : deletionStampCauses(sent, old));
    const why = rulesOf(type).forbids?.(next, old);
    if (why !== undefined) throw forbidden(type, name, why);
    return this.#settle(stored, old, next);
  }

  /** A patch has no preconditions: one that names another uid asks to change it, which the real server finds wrong twice. */
  #assertSameUid({ type, name }: Target, old: KubeObject, sent: KubeObject): void {
    const { uid } = sent.metadata;
    if (uid === undefined || uid === old.metadata.uid) return;
    const cause = invalidValue("metadata.uid", uid, "field is immutable");
    throw invalid(type, name, [cause, cause]);
  }

  #assertValid(
    type: ResourceType,
    object: KubeObject,
    old: KubeObject | undefined,
    more: readonly StatusCause[] = [],
  ): void {
    const ofUpdate = old === undefined ? [] : [...more, ...finalizerCauses(object, old)];
    const causes = [
      ...validateMetadata(type, object),
      // The real server looks at the metadata of a custom resource twice, and says twice what is wrong.
      ...(type.custom ? [...ofUpdate, ...ofUpdate] : ofUpdate),
      ...(rulesOf(type).validate?.(object, old) ?? []),
    ];
    causes.push(...(rulesOf(type).remark?.(causes) ?? []));
    if (causes.length > 0) throw invalid(type, object.metadata.name, causes);
  }

  /** Writes an update, unless it changes nothing; an object whose deletion it completes goes. */
  #settle(stored: StoredObject, old: KubeObject, next: KubeObject): KubeObject {
    if (isDeletionComplete(next) && !this.#isInhabited(next)) return this.#commit("DELETED", stored, next, stored.body);
    if (isDeepStrictEqual(next, old)) return old;
    return this.#commit("MODIFIED", stored, next, stored.body);
  }

  /** Begins to: an empty one too goes by whoever empties it. */
  #deleteNamespace({ stored, object }: { stored: StoredObject; object: KubeObject }): {
    object: KubeObject;
    removed: boolean;
  } {
    if (object.metadata.deletionTimestamp !== undefined) return { object, removed: false };
    const terminating = {
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: rfc3339(this.#now()) },
      status: { phase: "Terminating" },
    };
    return { object: this.#commit("MODIFIED", stored, terminating, stored.body), removed: false };
  }

  /** A namespace that something is still in. */
  #isInhabited({ kind, metadata }: KubeObject): boolean {
    return kind === namespaceType().kind && this.#store.countInNamespace(metadata.name) > 0;
  }

  #commit(type: ChangeType, key: ObjectKey, object: KubeObject, prev: string | undefined): KubeObject {
    const { uid, ownerReferences = [] } = object.metadata;
    if (uid === undefined) throw internalError(`${key.resource} ${key.name} has no uid`);
    if (this.#isDry) return object;
    const owners = ownerReferences.map((owner) => owner.uid);
    const { resource, namespace, name } = key;
    const change = this.#store.write(type, { resource, namespace, name }, uid, owners, prev, (rv) =>
      fitting(serialise(object, rv)),
    );
    for (const listener of this.#listeners) listener(change);
    return parse(change.body);
  }
}

/** What the real server's store takes in one write. */
const maxObjectBytes = 1.5 * 1024 * 1024;

function fitting(text: string): string {
  if (Buffer.byteLength(text) > maxObjectBytes) throw unforeseen("etcdserver: request is too large");
  return text;
}
