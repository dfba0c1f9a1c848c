import { listIn, objectIn, stringIn } from "../json.ts";
import type {
  DeleteWish,
  KubeObject,
  NodeBinding,
  ObjectRef,
  PatchType,
  ResourceApi,
  ResourceRef,
  WatchEvent,
} from "../resource-api.ts";
import { ApiConnection } from "./api-connection.ts";
import { objectOf, readAnswer } from "./read-answer.ts";
import { collectionPath, objectPath } from "./resource-path.ts";
import { resumedWatch } from "./resumed-watch.ts";
import type { ServerAccess } from "./server-access.ts";

/** ResourceApi of a server over HTTP: the embedded one or a real kube-apiserver. */
export class HttpResourceApi implements ResourceApi {
  readonly #connection: ApiConnection;

  constructor(access: ServerAccess) {
    this.#connection = new ApiConnection(access);
  }

  async get(ref: ObjectRef): Promise<KubeObject> {
    return objectOf(await this.#call("GET", objectPath(ref)));
  }

  async list(resource: ResourceRef, namespace?: string): Promise<{ items: KubeObject[]; resourceVersion: string }> {
    const list = await this.#call("GET", collectionPath(resource, namespace));
    const resourceVersion = stringIn(objectIn(list, "metadata"), "resourceVersion");
    if (resourceVersion === undefined) throw new Error(`The list of ${resource.plural} has no resourceVersion.`);
    // Items of a real server's list leave out what the list says of all of them.
    const apiVersion = stringIn(list, "apiVersion") ?? "";
    const kind = (stringIn(list, "kind") ?? "").replace(/List$/, "");
    return { items: listIn(list, "items").map((item) => objectOf(item, { apiVersion, kind })), resourceVersion };
  }

  async create(resource: ResourceRef, namespace: string, object: KubeObject): Promise<KubeObject> {
    return objectOf(await this.#call("POST", collectionPath(resource, namespace), json(object)));
  }

  async patch(ref: ObjectRef, type: PatchType, body: unknown, subresource?: "status"): Promise<KubeObject> {
    return objectOf(await this.#call("PATCH", objectPath(ref, subresource), { type, text: JSON.stringify(body) }));
  }

  async delete(ref: ObjectRef, wish?: DeleteWish): Promise<void> {
    const options = { apiVersion: "v1", kind: "DeleteOptions", ...wish };
    await this.#call("DELETE", objectPath(ref), wish === undefined ? undefined : json(options));
  }

  async bind(pod: ObjectRef, { uid, nodeName }: NodeBinding): Promise<void> {
    const target = { apiVersion: "v1", kind: "Node", name: nodeName };
    const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: pod.name, uid }, target };
    await this.#call("POST", objectPath(pod, "binding"), json(binding));
  }

  watch(
    resource: ResourceRef,
    resourceVersion: string,
    signal: AbortSignal,
    namespace?: string,
  ): AsyncIterable<WatchEvent> {
    return resumedWatch(this.#connection, collectionPath(resource, namespace), resourceVersion, signal);
  }

  /** Ends what is under way and lets the connections go. */
  close(): void {
    this.#connection.close();
  }

  async #call(method: string, path: string, body?: { type: string; text: string }) {
    return readAnswer(await this.#connection.open({ method, path, ...(body === undefined ? {} : { body }) }));
  }
}

function json(value: unknown): { type: string; text: string } {
  return { type: "application/json", text: JSON.stringify(value) };
}
