import type { ListPage } from "../registry/list-page.ts";
import { parse } from "../registry/object-text.ts";
import type { ResourceType } from "../resource-types.ts";
import { listMetadata } from "./list-body.ts";
import { columnsOf } from "./table-columns.ts";

/** What a table's rows carry of their objects. */
export type IncludeObject = "None" | "Metadata" | "Object";

export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const asked = query.get("includeObject");
  return asked === "None" || asked === "Object" ? asked : "Metadata";
}

/** A page of a list as a table. */
export function tableOfPage(type: ResourceType, page: ListPage, include: IncludeObject, now: Date): unknown {
  return table(type, listMetadata(page), page.bodies, include, now);
}

/** One object, given as JSON text, as a table of one row. */
export function tableOfObject(type: ResourceType, body: string, include: IncludeObject, now: Date): unknown {
  return table(type, { resourceVersion: parse(body).metadata.resourceVersion }, [body], include, now);
}

function table(
  type: ResourceType,
  metadata: object,
  bodies: readonly string[],
  include: IncludeObject,
  now: Date,
): unknown {
  const columns = columnsOf(type);
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: columns.map((column) => ({
      name: column.name,
      type: column.type ?? "string",
      format: column.name === "Name" ? "name" : "",
      description: "",
      priority: column.isWide === true ? 1 : 0,
    })),
    rows: bodies.map((body) => {
      const object = parse(body);
      const cells = columns.map((column) => column.cell(object, now));
      if (include === "None") return { cells, object: null };
      if (include === "Object") return { cells, object };
      return {
        cells,
        object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata },
      };
    }),
  };
}
