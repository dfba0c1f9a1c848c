import { isDeepStrictEqual } from "node:util";
import type { KubeObject, ObjectMeta } from "../../resource-api.ts";
import type { ResourceType } from "../resource-types.ts";
import { rulesOf } from "./kinds/kind-rules.ts";
import { rfc3339 } from "./timestamp.ts";

/** The metadata of a new object: what the caller may choose, and what the server decides. */
export function newMetadata(
  type: ResourceType,
  given: { namespace: string; name: string; uid: string; now: Date },
  sent: ObjectMeta,
): ObjectMeta {
  const { namespace, name, uid, now } = given;
  const { labels, annotations, finalizers, ownerReferences, generateName } = sent;
  return {
    name,
    ...(generateName === undefined ? {} : { generateName }),
    ...(type.namespaced ? { namespace } : {}),
    uid,
    ...(type.hasGeneration ? { generation: 1 } : {}),
    creationTimestamp: rfc3339(now),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
    ...(finalizers === undefined ? {} : { finalizers }),
  };
}

/** Everything but what the server alone decides; the status stays where it is a subresource. */
export function withSpecOf(type: ResourceType, sent: KubeObject, old: KubeObject): KubeObject {
  const { labels, annotations, finalizers, ownerReferences } = sent.metadata;
  const { labels: _l, annotations: _n, finalizers: _f, ownerReferences: _o, ...kept } = old.metadata;
  const metadata: ObjectMeta = {
    ...kept,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
    ...(finalizers === undefined ? {} : { finalizers }),
  };
  const { status: sentStatus, ...members } = sent;
  const status = type.hasStatus ? old.status : sentStatus;
  const replaced: KubeObject = {
    ...members,
    apiVersion: old.apiVersion,
    kind: old.kind,
    metadata,
    ...(status === undefined ? {} : { status }),
  };
  const next = rulesOf(type).withDefaults?.(replaced) ?? replaced;
  if (!type.hasGeneration || sameBut(["metadata", "status"], next, old)) return next;
  return { ...next, metadata: { ...next.metadata, generation: (old.metadata.generation ?? 0) + 1 } };
}

/** Status is replaced, everything else stays: the metadata of a status write is not looked at. */
export function withStatusOf(type: ResourceType, sent: KubeObject, old: KubeObject): KubeObject {
  const { status: _, ...kept } = old;
  const replaced: KubeObject = {
    ...kept,
    apiVersion: old.apiVersion,
    kind: old.kind,
    metadata: old.metadata,
    ...(sent.status === undefined ? {} : { status: sent.status }),
  };
  return rulesOf(type).withDefaults?.(replaced) ?? replaced;
}

function sameBut(ignored: readonly string[], a: KubeObject, b: KubeObject): boolean {
  const pick = (object: KubeObject) =>
    Object.fromEntries(Object.entries(object).filter(([member]) => !ignored.includes(member)));
  return isDeepStrictEqual(pick(a), pick(b));
}
