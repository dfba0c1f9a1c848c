import { notServed } from "../refusals.ts";
import { type ResourceType, resourceTypes } from "../resource-types.ts";

/**
 * Just enough OpenAPI for `kubectl create` and `kubectl apply` of custom resources to leave the check of unknown
 * members to the server. The built-in kinds are left out: their members are not known here.
 */
export function openApiRoot(): unknown {
  const versions = new Set(checkedTypes().map((type) => `apis/${type.group}/${type.version}`));
  const paths = [...versions].map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}` }]);
  return { paths: Object.fromEntries(paths) };
}

/** The document of one group and version. Throws 404 where it has none. */
export function openApiDocument(group: string, version: string): unknown {
  const types = checkedTypes().filter((type) => type.group === group && type.version === version);
  if (types.length === 0) throw notServed(`the OpenAPI document of ${group}/${version}`);
  const paths = types.map((type) => [
    `/apis/${group}/${version}/namespaces/{namespace}/${type.plural}/{name}`,
    { patch: operation(type) },
  ]);
  return { openapi: "3.0.0", info: { title: "holdfast-embedded", version }, paths: Object.fromEntries(paths) };
}

const checkedTypes = (): ResourceType[] => resourceTypes.filter((type) => type.custom);

function operation({ group, version, kind }: ResourceType): unknown {
  return {
    "x-kubernetes-action": "patch",
    "x-kubernetes-group-version-kind": { group, version, kind },
    parameters: [{ name: "fieldValidation", in: "query", schema: { type: "string", uniqueItems: true } }],
    responses: {},
  };
}
