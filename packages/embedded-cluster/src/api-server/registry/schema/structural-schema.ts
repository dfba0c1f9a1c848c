import { readFileSync } from "node:fs";
import { join } from "node:path";
import { internalError } from "../../refusals.ts";

/** The part of a CustomResourceDefinition's schema that these schemas use. */
export interface Schema {
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly default?: unknown;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-list-type"?: string;
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
}

/** The schemas of one kind's own members. */
export interface KindSchema {
  readonly spec: Schema;
  readonly status?: Schema;
}

/** Reads a kind's schema, with what Sandbox and SandboxTemplate share put in its place. */
export function readKindSchema(file: "sandbox.json" | "sandbox-template.json"): KindSchema {
  const kind: KindSchema = readJson(file);
  const blueprint: Record<string, Schema> = readJson("blueprint.json");
  if (kind.spec.properties === undefined) throw internalError(`${file} has no properties`);
  return { ...kind, spec: { ...kind.spec, properties: { ...kind.spec.properties, ...blueprint } } };
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8"));
}

/** The schema of the pod's spec in a kind that has a pod template. */
export function podSpecOf({ spec }: KindSchema): Schema {
  const found = spec.properties?.podTemplate?.properties?.spec;
  if (found === undefined) throw internalError("the schema has no pod template");
  return found;
}
