import type { ListHead } from "../registry/list-page.ts";
import { parse } from "../registry/object-text.ts";
import type { ResourceType } from "../resource-types.ts";
import { type ListBody, listBody, listMetadata } from "./list-body.ts";
import { columnsOf } from "./table-columns.ts";

/** What a table's rows carry of their objects. */
export type IncludeObject = "None" | "Metadata" | "Object";

export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const asked = query.get("includeObject");
  return asked === "None" || asked === "Object" ? asked : "Metadata";
}

/** A page of a list as a table. */
export function tableList(type: ResourceType, page: ListHead, include: IncludeObject, now: Date): ListBody {
  return listBody(tableMembers(type, listMetadata(page)), "rows", (body) =>
    JSON.stringify(rowOf(type, body, include, now)),
  );
}

/** One object, given as JSON text, as a table of one row. */
export function tableOfObject(type: ResourceType, body: string, include: IncludeObject, now: Date): unknown {
  const metadata = { resourceVersion: parse(body).metadata.resourceVersion };
  return { ...tableMembers(type, metadata), rows: [rowOf(type, body, include, now)] };
}

function tableMembers(type: ResourceType, metadata: object): object {
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: columnsOf(type).map((column) => ({
      name: column.name,
      type: column.type ?? "string",
      format: column.name === "Name" ? "name" : "",
      description: "",
      priority: column.isWide === true ? 1 : 0,
    })),
  };
}

function rowOf(type: ResourceType, body: string, include: IncludeObject, now: Date): object {
  const object = parse(body);
  const cells = columnsOf(type).map((column) => column.cell(object, now));
  if (include === "None") return { cells, object: null };
  if (include === "Object") return { cells, object };
  return {
    cells,
    object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata },
  };
}
