import { orAborted } from "@holdfast/async";
import {
  ApiStatusError,
  type KubeObject,
  LostReplyError,
  type ResourceApi,
  type ResourceRef,
} from "@holdfast/embedded-cluster/testing";
import { type ApiAnswer, type ApiRequest, type ApiStream, type ApiTransport, NoAnswer } from "@holdfast/kube";

/** A request that was carried out or refused, as its caller composed it. */
export interface SentRequest {
  readonly method: ApiRequest["method"];
  readonly plural: string;
  readonly name: string;
  readonly body: unknown;
}

/** Told of each request: before it is sent, and how it was answered. */
export interface TransportWitness {
  sent(request: SentRequest): void;
  answered(request: SentRequest, answer: Answered): void;
  /** What somebody does just before it is carried out; undefined: nothing. */
  before(request: SentRequest): Promise<void> | undefined;
  /** How long the answer is on its way; undefined: it is there at once. */
  delayOf(request: SentRequest): Promise<void> | undefined;
}

export type Answered =
  | { readonly t: "ok"; readonly body: unknown }
  | { readonly t: "refused" | "lost"; readonly why: string };

/** Requests of the product's own Kubernetes client, carried out by a cluster in this process. */
export class MemoryTransport implements ApiTransport {
  readonly #api: ResourceApi;
  readonly #witness: TransportWitness;
  readonly #closed = new AbortController();

  constructor(api: ResourceApi, witness: TransportWitness) {
    this.#api = api;
    this.#witness = witness;
  }

  async send(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    if (signal.aborted || this.#closed.signal.aborted)
      throw new NoAnswer(false, "it was given up before it was sent", signal.reason);
    const until = AbortSignal.any([signal, this.#closed.signal]);
    const { resource, name } = placeOf(request.path);
    const sent = { method: request.method, plural: resource.plural, name, body: request.body?.json };
    try {
      this.#witness.sent(sent);
      const body = await orAborted(this.#answer(request, sent), until);
      this.#witness.answered(sent, { t: "ok", body });
      return { status: request.method === "POST" ? 201 : 200, body, retryAfterMs: undefined };
    } catch (error) {
      const why = String(error).slice(0, 120);
      this.#witness.answered(sent, { t: error instanceof ApiStatusError ? "refused" : "lost", why });
      if (error instanceof ApiStatusError) {
        const seconds = error.status.details?.retryAfterSeconds;
        return {
          status: error.status.code,
          body: error.status,
          retryAfterMs: seconds === undefined ? undefined : seconds * 1_000,
        };
      }
      if (error instanceof LostReplyError || until.aborted) throw new NoAnswer(true, String(error), error);
      throw error;
    }
  }

  async stream(request: ApiRequest, signal: AbortSignal): Promise<ApiStream> {
    const { resource, namespace } = placeOf(request.path);
    const until = AbortSignal.any([signal, this.#closed.signal]);
    const selects = selectorOf(request.query?.labelSelector);
    const api = this.#api;
    const version = request.query?.resourceVersion ?? "0";
    return {
      statusCode: 200,
      headers: {},
      async *[Symbol.asyncIterator]() {
        for await (const { type, object } of api.watch(resource, version, until, namespace)) {
          if (type !== "BOOKMARK" && !selects(object)) continue;
          yield Buffer.from(`${JSON.stringify({ type, object })}\n`);
        }
      },
    };
  }

  close(): void {
    this.#closed.abort(new Error("the client is closed"));
  }

  async #answer(request: ApiRequest, sent: SentRequest): Promise<unknown> {
    await this.#witness.before(sent);
    try {
      return await this.#carryOut(request);
    } finally {
      await this.#witness.delayOf(sent);
    }
  }

  async #carryOut({ method, path, query, body }: ApiRequest): Promise<unknown> {
    const { resource, namespace, name } = placeOf(path);
    const json = body?.json;
    const ref = { resource, namespace, name };
    if (method === "GET" && name !== "") return await this.#api.get(ref);
    if (method === "GET") {
      const { items, resourceVersion } = await this.#api.list(resource, namespace);
      return { kind: "List", metadata: { resourceVersion }, items: items.filter(selectorOf(query?.labelSelector)) };
    }
    if (method === "POST") return await this.#api.create(resource, namespace, json as KubeObject);
    if (method === "DELETE") return await this.#api.delete(ref, json as Parameters<ResourceApi["delete"]>[1]);
    return await this.#api.patch(ref, "application/json-patch+json", json as readonly unknown[]);
  }
}

/** Where a path leads: a collection, or an object in it. */
export function placeOf(path: string): { resource: ResourceRef; namespace: string; name: string } {
  const parts = path.split("/").slice(1);
  const core = parts[0] === "api";
  const [group = "", version = ""] = core ? ["", parts[1]] : [parts[1], parts[2]];
  const rest = parts.slice(core ? 2 : 3);
  const [, namespace = "", plural = "", name = ""] = rest;
  return { resource: { group, version, plural }, namespace, name };
}

/** `key=value`, the only kind that the product asks for. */
function selectorOf(selector: string | undefined): (object: KubeObject) => boolean {
  if (selector === undefined) return () => true;
  const [key = "", value] = selector.split("=");
  return (object) =>
    value === undefined ? key in (object.metadata.labels ?? {}) : object.metadata.labels?.[key] === value;
}
