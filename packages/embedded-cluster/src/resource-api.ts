/**
 * What the controller and the node need of an API server. The embedded api-server implements it in-process; a real
 * kube-apiserver can stand behind it, so that each part is replaceable by the real one.
 */

/** A Kubernetes object as JSON. Parts narrow it to the shapes they read. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec?: unknown;
  status?: unknown;
  [member: string]: unknown;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  generateName?: string;
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Which collection: `group` is "" for the core group. */
export interface ResourceRef {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
}

/** Where one object stands. */
export interface ObjectRef {
  readonly resource: ResourceRef;
  readonly namespace: string;
  readonly name: string;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: KubeObject;
}

export type PatchType = "application/json-patch+json" | "application/merge-patch+json";

export interface DeleteWish {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** The node that a pod is given to; the uid keeps it off another pod that has the name by now. */
export interface NodeBinding {
  readonly uid: string;
  readonly nodeName: string;
}

/** Every refusal is an ApiStatusError carrying the `Status` body that the real server would send. */
export interface ResourceApi {
  get(ref: ObjectRef): Promise<KubeObject>;
  list(resource: ResourceRef, namespace?: string): Promise<{ items: KubeObject[]; resourceVersion: string }>;
  create(resource: ResourceRef, namespace: string, object: KubeObject): Promise<KubeObject>;
  patch(ref: ObjectRef, type: PatchType, body: unknown, subresource?: "status"): Promise<KubeObject>;
  delete(ref: ObjectRef, wish?: DeleteWish): Promise<void>;
  /** Gives a pod to a node, as a scheduler does: once, and never one that is being deleted (409). */
  bind(pod: ObjectRef, binding: NodeBinding): Promise<void>;
  /** Yields every change after `resourceVersion`, in order, until the signal aborts. Throws a 410 ApiStatusError when it was compacted. */
  watch(
    resource: ResourceRef,
    resourceVersion: string,
    signal: AbortSignal,
    namespace?: string,
  ): AsyncIterable<WatchEvent>;
}
