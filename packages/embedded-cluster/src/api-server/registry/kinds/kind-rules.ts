import type { StatusCause } from "../../../api-status-error.ts";
import type { KubeObject } from "../../../resource-api.ts";
import type { ResourceType } from "../../resource-types.ts";
import { claimRules } from "./claim-rules.ts";
import { eventRules } from "./event-rules.ts";
import { namespaceRules } from "./namespace-rules.ts";
import { networkPolicyRules } from "./network-policy-rules.ts";
import { podRules } from "./pod-rules.ts";
import { sandboxRules, sandboxTemplateRules } from "./sandbox-rules.ts";
import { secretRules } from "./secret-rules.ts";
import { serviceRules } from "./service-rules.ts";

/** What one kind adds to the generic registry. */
export interface KindRules {
  /** Fills in defaults, on create and on every update. Returns a new object or the same. */
  readonly withDefaults?: (object: KubeObject) => KubeObject;
  /** Fills in what only a new object is given, its first status included. */
  readonly initialised?: (object: KubeObject) => KubeObject;
  /** A status sent with a create is kept, though it is a subresource. */
  readonly createsWithStatus?: true;
  /** Members of a body that are not known and would be dropped; also of a merge patch. */
  readonly unknownFields?: (body: unknown) => string[];
  /** What is wrong with an object; `old` is there on update. */
  readonly validate?: (object: KubeObject, old: KubeObject | undefined) => StatusCause[];
  /** Why a valid update is forbidden, as admission finds after validation. */
  readonly forbids?: (object: KubeObject, old: KubeObject) => string | undefined;
  /** What the server adds to the causes that it has found. */
  readonly remark?: (causes: readonly StatusCause[]) => StatusCause[];
}

const none: KindRules = {};

const rules: Record<string, KindRules> = {
  Sandbox: sandboxRules,
  SandboxTemplate: sandboxTemplateRules,
  Pod: podRules,
  Service: serviceRules,
  PersistentVolumeClaim: claimRules,
  Namespace: namespaceRules,
  Node: { createsWithStatus: true },
  Secret: secretRules,
  Event: eventRules,
  NetworkPolicy: networkPolicyRules,
};

/** The rules of a kind; most have none of their own. */
export function rulesOf(type: ResourceType): KindRules {
  return rules[type.kind] ?? none;
}
