import type { Attempt } from "./attempt.ts";
import { pathOf, type Resource } from "./resources.ts";

/** Composes the requests for one namespace. */
export class Api {
  readonly namespace: string;

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  get(resource: Resource, name: string): Attempt {
    const request = { method: "GET", path: pathOf(resource, this.namespace, name) } as const;
    return { verb: "get", resource, namespace: this.namespace, name, request };
  }

  list(resource: Resource, query: Readonly<Record<string, string | undefined>>): Attempt {
    const request = { method: "GET", path: pathOf(resource, this.namespace), query } as const;
    return { verb: "list", resource, namespace: this.namespace, name: undefined, request };
  }

  create(resource: Resource, name: string, object: unknown): Attempt {
    const body = { type: "application/json", json: object };
    const request = { method: "POST", path: pathOf(resource, this.namespace), body } as const;
    return { verb: "create", resource, namespace: this.namespace, name, request };
  }

  /** A JSON Patch; no other kind is sent. */
  patch(resource: Resource, name: string, operations: readonly unknown[]): Attempt {
    const body = { type: "application/json-patch+json", json: operations };
    const request = { method: "PATCH", path: pathOf(resource, this.namespace, name), body } as const;
    return { verb: "patch", resource, namespace: this.namespace, name, request };
  }

  /** Only the object with this uid at this version. In the foreground, where what belongs to it must be gone first. */
  delete(
    resource: Resource,
    name: string,
    preconditions: { readonly uid: string; readonly resourceVersion: string },
    propagationPolicy: "Foreground" | "Background" = "Foreground",
  ): Attempt {
    const options = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy, preconditions };
    const body = { type: "application/json", json: options };
    const request = { method: "DELETE", path: pathOf(resource, this.namespace, name), body } as const;
    return { verb: "delete", resource, namespace: this.namespace, name, request };
  }
}
