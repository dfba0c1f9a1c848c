import { listIn, stringIn, valueAt } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import { withFinalizers } from "../registry/deletion.ts";
import { claimProtectionFinalizer } from "../registry/kinds/claim-rules.ts";
import type { Registry } from "../registry/registry.ts";
import { findType, type ResourceType } from "../resource-types.ts";

/** Lets a deleted claim go only once no pod that a node runs uses it. */
export class ClaimProtection {
  readonly #registry: Registry;
  readonly #lookLater: (namespace: string, claim: string) => void;

  constructor(registry: Registry, lookLater: (namespace: string, claim: string) => void) {
    this.#registry = registry;
    this.#lookLater = lookLater;
  }

  noticed(object: KubeObject, deleted: boolean): void {
    const { name, namespace = "", deletionTimestamp } = object.metadata;
    if (object.kind === "PersistentVolumeClaim" && deletionTimestamp !== undefined && !deleted) {
      this.#lookLater(namespace, name);
    }
    if (object.kind === "Pod" && deleted) {
      for (const claim of claimsOf(object)) this.#lookLater(namespace, claim);
    }
  }

  look(namespace: string, name: string): void {
    const target = { type: served("persistentvolumeclaims"), namespace, name };
    const { metadata } = this.#registry.get(target);
    if (metadata.deletionTimestamp === undefined) return;
    if (!(metadata.finalizers ?? []).includes(claimProtectionFinalizer)) return;
    if (this.#isInUse(namespace, name)) return;
    this.#registry.changeMetadata(target, (current) =>
      withFinalizers(
        current,
        (current.finalizers ?? []).filter((item) => item !== claimProtectionFinalizer),
      ),
    );
  }

  #isInUse(namespace: string, claim: string): boolean {
    return this.#registry
      .mentioning(served("pods"), namespace, JSON.stringify(claim))
      .some((pod) => (stringIn(pod.spec, "nodeName") ?? "") !== "" && claimsOf(pod).includes(claim));
  }
}

function claimsOf(pod: KubeObject): string[] {
  return listIn(pod.spec, "volumes").flatMap((volume) => {
    const claim = valueAt(volume, "persistentVolumeClaim.claimName");
    return typeof claim === "string" ? [claim] : [];
  });
}

function served(plural: string): ResourceType {
  const type = findType({ group: "", version: "v1", plural });
  if (type === undefined) throw new Error(`${plural} are not served`);
  return type;
}
