import type { ListHead } from "../registry/list-page.ts";
import { apiVersionOf, type ResourceType } from "../resource-types.ts";

/** A list as JSON text in parts: what comes before the items, each item, what comes after them. */
export interface ListBody {
  readonly head: string;
  /** Turns an object's JSON text into an item. */
  readonly item: (body: string) => string;
  readonly tail: string;
}

/** A list of the objects themselves, which are not parsed. */
export function objectList(type: ResourceType, head: ListHead): ListBody {
  // A list of custom resources says that nothing follows; a built-in one leaves it out.
  const metadata = { ...(type.custom ? { continue: "" } : {}), ...listMetadata(head) };
  const members = { kind: `${type.kind}List`, apiVersion: apiVersionOf(type), metadata };
  return listBody(members, "items", (body) => listItem(type, body));
}

/** A list whose items stand under `member`, after the others. */
export function listBody(members: object, member: string, item: (body: string) => string): ListBody {
  return { head: `${JSON.stringify(members).slice(0, -1)},${JSON.stringify(member)}:[`, item, tail: "]}" };
}

export function wholeText({ head, item, tail }: ListBody, bodies: readonly string[]): string {
  return `${head}${bodies.map(item).join(",")}${tail}`;
}

/** What a list says of itself. */
export function listMetadata(head: ListHead): object {
  return {
    resourceVersion: String(head.resourceVersion),
    ...(head.continue === undefined ? {} : { continue: head.continue }),
    ...(head.remaining === undefined ? {} : { remainingItemCount: head.remaining }),
  };
}

/** The items of a built-in list do not say their kind; a client that counts on it fails on the real server too. */
function listItem(type: ResourceType, body: string): string {
  if (type.custom) return body;
  const head = `${JSON.stringify({ apiVersion: apiVersionOf(type), kind: type.kind }).slice(0, -1)},`;
  return body.startsWith(head) ? `{${body.slice(head.length)}` : body;
}
