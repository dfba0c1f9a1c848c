import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { Answer, HttpClient } from "./http-client.ts";
import { at, type Json, listAt, textAt } from "./json.ts";
import { Placeholders } from "./placeholders.ts";
import { resourcePath } from "./resource-paths.ts";
import type { Entry, Transcript } from "./transcript.ts";
import { WatchStream } from "./watch-stream.ts";

export interface CallWish {
  readonly body?: unknown;
  /** The content type of the body. */
  readonly type?: string;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** What of the answer's body is recorded; all of it where absent. */
  readonly seen?: (body: Json) => Json;
}

/** What the cluster under test offers besides its API. */
export interface StageOptions {
  readonly client: HttpClient;
  readonly namespace: string;
  /** A program image that the node has, and the Node in it. */
  readonly image: string;
  readonly nodePath: string;
  readonly compact?: (() => Promise<void>) | undefined;
  readonly deadlineMs: number;
}

export const jsonPatch = "application/json-patch+json";
export const mergePatch = "application/merge-patch+json";

/** Where one case plays: raw requests, unique names, a transcript, and the tidying afterwards. */
export class Stage {
  readonly namespace: string;
  readonly image: string;
  readonly nodePath: string;
  readonly signal: AbortSignal;
  readonly #options: StageOptions;
  readonly #placeholders: Placeholders;
  readonly #entries: Entry[] = [];
  readonly #tidying: (() => Promise<void>)[] = [];
  readonly #streams: WatchStream[] = [];
  readonly #labels = new Map<string, number>();
  readonly #prefix = `c${Math.random().toString(36).slice(2, 8).padEnd(6, "0")}-`;

  constructor(options: StageOptions) {
    this.#options = options;
    this.namespace = options.namespace;
    this.image = options.image;
    this.nodePath = options.nodePath;
    this.signal = AbortSignal.timeout(options.deadlineMs);
    this.#placeholders = new Placeholders(options.namespace);
    this.hide(options.image, "<image>");
  }

  /** The caller's own bearer token, where there is one. */
  get token(): string {
    return this.#options.client.token ?? "";
  }

  get transcript(): Transcript {
    return this.#entries;
  }

  /** A name that nothing else has; the transcript shows `<label>`, and `<label-2>` where it is asked for again. */
  name(label: string): string {
    const count = (this.#labels.get(label) ?? 0) + 1;
    this.#labels.set(label, count);
    const numbered = count === 1 ? label : `${label}-${count}`;
    this.hide(this.#prefix + numbered, `<${numbered}>`);
    return this.#prefix + numbered;
  }

  /** From now on the transcript shows the placeholder for this text. */
  hide(text: string, placeholder: string): void {
    this.#placeholders.add(text, placeholder);
  }

  path(plural: string, name?: string, subresource?: string): string {
    return resourcePath(this.namespace, plural, name, subresource);
  }

  /** Sends a request and records its answer. */
  async call(step: string, method: string, path: string, wish: CallWish = {}): Promise<Answer> {
    const answer = await this.raw(method, path, wish);
    const { seen = (body: Json): Json => body } = wish;
    const { warning, "content-type": type = "", "retry-after": retryAfter } = answer.headers;
    this.note(step, {
      code: answer.code,
      type,
      ...(warning === undefined ? {} : { warning }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
      body: seen(answer.body),
    });
    return answer;
  }

  /** Sends a request that is not recorded and must succeed. */
  async do(method: string, path: string, wish: CallWish = {}): Promise<Json> {
    const answer = await this.raw(method, path, wish);
    assert.ok(answer.code < 400, `${method} ${path} answered ${answer.code}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Sends a request that is neither recorded nor judged. */
  async raw(method: string, path: string, wish: CallWish = {}): Promise<Answer> {
    const headers = {
      ...(wish.type === undefined ? {} : { "content-type": wish.type }),
      ...(wish.accept === undefined ? {} : { accept: wish.accept }),
      ...wish.headers,
    };
    const answer = await this.#options.client.call(
      { method, path: withQuery(path, wish.query), body: wish.body, headers },
      this.signal,
    );
    const created = at(answer.body, "metadata", "name");
    if (method === "POST" && answer.code === 201 && typeof created === "string") {
      this.removeLater(`${path.split("?")[0]}/${created}`);
    }
    return answer;
  }

  create(plural: string, body: unknown): Promise<Json> {
    return this.do("POST", this.path(plural), { body });
  }

  async get(plural: string, name: string): Promise<Json | undefined> {
    const answer = await this.raw("GET", this.path(plural, name));
    return answer.code === 200 ? answer.body : undefined;
  }

  merge(plural: string, name: string, body: unknown, subresource?: string): Promise<Json> {
    return this.do("PATCH", this.path(plural, name, subresource), { body, type: mergePatch });
  }

  /** Opens a watch; the stage closes it at the end. */
  async watch(path: string, query: Readonly<Record<string, string>> = {}, accept?: string): Promise<WatchStream> {
    const stream = new WatchStream(
      await this.#options.client.open(
        {
          method: "GET",
          path: withQuery(path, { watch: "true", ...query }),
          headers: accept === undefined ? {} : { accept },
        },
        this.signal,
      ),
    );
    this.#streams.push(stream);
    return stream;
  }

  /** Records a value. */
  note(step: string, value: Json): void {
    this.#entries.push({ step: `${this.#placeholders.apply(step)}`, seen: this.#placeholders.apply(value) });
  }

  /** Waits until an object is as awaited and returns it; `undefined` stands for one that is gone. Listens, never polls. */
  async until(
    plural: string,
    name: string,
    isSo: (object: Json | undefined) => boolean,
    what: string,
  ): Promise<Json | undefined> {
    const query = { fieldSelector: `metadata.name=${name}` };
    let seen: Json | undefined;
    try {
      for (;;) {
        const list = await this.do("GET", this.path(plural), { query });
        seen = listAt(list, "items")[0];
        if (isSo(seen)) return seen;
        const resourceVersion = textAt(list, "metadata", "resourceVersion");
        const stream = await this.watch(this.path(plural), { ...query, resourceVersion });
        for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
          if (event.type === "ERROR") break;
          seen = event.type === "DELETED" ? undefined : event.object;
          if (!isSo(seen)) continue;
          stream.close();
          return seen;
        }
        this.signal.throwIfAborted();
      }
    } catch (cause) {
      if (!this.signal.aborted) throw cause;
      throw new Error(`${plural} ${name} did not come to ${what}; it is ${JSON.stringify(seen)}`, { cause });
    }
  }

  async untilGone(plural: string, name: string): Promise<void> {
    await this.until(plural, name, (object) => object === undefined, "be gone");
  }

  /** Waits for what cannot be listened for: asks again, at most `limitMs`. */
  async eventually(what: string, isSo: () => Promise<boolean>, limitMs = 20_000): Promise<void> {
    const late = AbortSignal.any([AbortSignal.timeout(limitMs), this.signal]);
    while (!(await isSo())) {
      if (late.aborted) throw new Error(`not so in time: ${what}`);
      await delay(50);
    }
  }

  /** Forgets the history up to now, where the cluster under test has a way to. */
  async compact(): Promise<void> {
    if (this.#options.compact === undefined) throw new Error("there is no way to compact this cluster");
    await this.#options.compact();
  }

  /** Sees to it that nothing stands at this path in the end. */
  removeLater(path: string): void {
    this.#tidying.push(() => this.#remove(path));
  }

  /** Closes what was opened and removes what was made, last first. */
  async close(): Promise<void> {
    for (const stream of this.#streams) stream.close();
    for (let tidy = this.#tidying.pop(); tidy !== undefined; tidy = this.#tidying.pop()) await tidy();
  }

  async #remove(path: string): Promise<void> {
    const { client } = this.#options;
    const signal = AbortSignal.timeout(10_000);
    const body = { gracePeriodSeconds: 0, propagationPolicy: "Background" };
    const gone = await client.call({ method: "DELETE", path, body }, signal);
    const finalizers = listAt(gone.body, "metadata", "finalizers");
    if (gone.code !== 200 || finalizers.length === 0) return;
    const headers = { "content-type": mergePatch };
    await client.call({ method: "PATCH", path, headers, body: { metadata: { finalizers: null } } }, signal);
  }
}

function withQuery(path: string, query: Readonly<Record<string, string>> | undefined): string {
  const text = new URLSearchParams(query).toString();
  return text === "" ? path : `${path}?${text}`;
}
