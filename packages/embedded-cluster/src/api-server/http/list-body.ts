import type { ListPage } from "../registry/list-page.ts";
import { apiVersionOf, type ResourceType } from "../resource-types.ts";

/** Writes a list as JSON text, without parsing its items. */
export function listBody(type: ResourceType, page: ListPage): string {
  // A list of custom resources says that nothing follows; a built-in one leaves it out.
  const metadata = { ...(type.custom ? { continue: "" } : {}), ...listMetadata(page) };
  const head = JSON.stringify({ kind: `${type.kind}List`, apiVersion: apiVersionOf(type), metadata });
  return `${head.slice(0, -1)},"items":[${page.bodies.map((body) => listItem(type, body)).join(",")}]}`;
}

/** What a list says of itself. */
export function listMetadata(page: ListPage): object {
  return {
    resourceVersion: String(page.resourceVersion),
    ...(page.continue === undefined ? {} : { continue: page.continue }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
}

/** The items of a built-in list do not say their kind; a client that counts on it fails on the real server too. */
function listItem(type: ResourceType, body: string): string {
  if (type.custom) return body;
  const head = `${JSON.stringify({ apiVersion: apiVersionOf(type), kind: type.kind }).slice(0, -1)},`;
  return body.startsWith(head) ? `{${body.slice(head.length)}` : body;
}
