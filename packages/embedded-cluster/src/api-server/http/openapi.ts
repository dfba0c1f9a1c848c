import { notServed } from "../refusals.ts";
import { readKindSchema, type Schema } from "../registry/schema/structural-schema.ts";
import { apiVersionOf, type ResourceType, resourceTypes } from "../resource-types.ts";

/**
 * As much OpenAPI as kubectl needs to leave the check of unknown members to the server, and to explain the custom
 * kinds. Of the built-in kinds it says no members: they are not known here.
 */
export function openApiRoot(): unknown {
  const versions = new Set(resourceTypes.map(pathOf));
  const paths = [...versions].map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}` }]);
  return { paths: Object.fromEntries(paths) };
}

/** The document of one group ("" is the core group) and version. Throws 404 where it has none. */
export function openApiDocument(group: string, version: string): unknown {
  const types = resourceTypes.filter((type) => type.group === group && type.version === version);
  if (types.length === 0) throw notServed(`the OpenAPI document of ${group}/${version}`);
  const paths = types.map((type) => {
    const place = type.namespaced ? "namespaces/{namespace}/" : "";
    return [`/${pathOf(type)}/${place}${type.plural}/{name}`, operations(type)];
  });
  const schemas = types.filter((type) => type.custom).map((type) => [schemaName(type), schemaOf(type)]);
  return {
    openapi: "3.0.0",
    info: { title: "holdfast-embedded", version },
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(schemas) },
  };
}

const pathOf = (type: ResourceType): string => (type.group === "" ? "api/v1" : `apis/${apiVersionOf(type)}`);

function operations(type: ResourceType): unknown {
  const { group, version, kind } = type;
  const gvk = { "x-kubernetes-group-version-kind": { group, version, kind } };
  const content = { "application/json": { schema: { $ref: `#/components/schemas/${schemaName(type)}` } } };
  return {
    get: {
      "x-kubernetes-action": "get",
      ...gvk,
      responses: { 200: { description: "OK", ...(type.custom ? { content } : {}) } },
    },
    patch: {
      "x-kubernetes-action": "patch",
      ...gvk,
      parameters: [{ name: "fieldValidation", in: "query", schema: { type: "string", uniqueItems: true } }],
      responses: {},
    },
  };
}

/** As the real server names a custom kind: the group backwards. */
function schemaName({ group, version, kind }: ResourceType): string {
  return [...group.split(".").toReversed(), version, kind].join(".");
}

function schemaOf(type: ResourceType): unknown {
  const { group, version, kind } = type;
  const own = readKindSchema(kind === "Sandbox" ? "sandbox.json" : "sandbox-template.json");
  const members: Readonly<Record<string, Schema | undefined>> = { spec: own.spec, status: own.status };
  return {
    type: "object",
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      ...Object.fromEntries(Object.entries(members).filter(([, schema]) => schema !== undefined)),
    },
    "x-kubernetes-group-version-kind": [{ group, kind, version }],
  };
}
