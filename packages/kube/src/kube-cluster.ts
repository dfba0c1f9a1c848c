import { type Clock, type Deadline, type Subscription, systemClock } from "@holdfast/async";
import { clusterRequestTimeoutMs, sandboxNameOf } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type {
  ClaimsReading,
  Cluster,
  ClusterNews,
  CreateEnding,
  CreateWish,
  DeletePodWish,
  DeleteWish,
  ListPage,
  ListWish,
  ModeWish,
  PodReading,
  RefreshedSandbox,
  Remains,
  SandboxReading,
  SandboxWatchEnd,
  SandboxWatchWish,
  TemplatePage,
  TemplateReading,
  WriteEnding,
} from "@holdfast/workspace";
import { Api } from "./api.ts";
import { composeModePatch } from "./compose/mode-patch.ts";
import { composeSandbox } from "./compose/new-sandbox.ts";
import { refreshedSandbox, withRevision } from "./compose/refresh.ts";
import type { LogSink } from "./log-sink.ts";
import { claimTemplateNames, type DiskKind } from "./objects/disk.ts";
import { requireObject } from "./objects/json.ts";
import { readSandboxObject } from "./objects/sandbox.ts";
import { readTemplateObject } from "./objects/template.ts";
import { Owned, type Owner } from "./owned.ts";
import { Reader } from "./reader.ts";
import { isObjectName, pods, type Resource, sandboxes, templates } from "./resources.ts";
import { readTemplatePage, templateNameMaxLength } from "./template-page.ts";
import type { ApiTransport } from "./transport/transport.ts";
import { ChangeFeed } from "./watch/change-feed.ts";
import { watchSandboxObjects } from "./watch/sandbox-watch.ts";
import { readWorkspacePage } from "./workspace-page.ts";
import { Writer } from "./writer.ts";

export interface KubeClusterInit {
  /** Undefined: "default". */
  readonly namespace?: string | undefined;
  readonly disk: DiskKind;
  /** Written over every template's, when given. */
  readonly runtimeClassName?: string | undefined;
  /** How long one request may take. */
  readonly requestTimeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly log: LogSink;
}

/** The cluster of the domain, as an API server and the agent-sandbox controller keep it. Constructing it sends nothing. */
export class KubeCluster implements Cluster {
  readonly namespace: string;
  readonly #disk: DiskKind;
  readonly #runtimeClassName: string | undefined;
  readonly #log: LogSink;
  readonly #transport: ApiTransport;
  readonly #api: Api;
  readonly #reader: Reader;
  readonly #writer: Writer;
  readonly #owned: Owned;
  readonly #feed: ChangeFeed;
  readonly #watchDeps: Parameters<typeof watchSandboxObjects>[0];
  readonly #closed = new AbortController();

  constructor(transport: ApiTransport, init: KubeClusterInit) {
    const clock = init.clock ?? systemClock;
    const requestTimeoutMs = init.requestTimeoutMs ?? clusterRequestTimeoutMs;
    this.namespace = namespaceFrom(init.namespace ?? "default");
    this.#disk = init.disk;
    this.#runtimeClassName = init.runtimeClassName;
    this.#log = init.log;
    this.#transport = transport;
    const deps = { transport, clock, log: init.log, namespace: this.namespace, requestTimeoutMs };
    this.#api = new Api(this.namespace);
    this.#reader = new Reader(deps);
    this.#writer = new Writer(deps);
    this.#owned = new Owned(this.#api, this.#reader, init.log);
    this.#feed = new ChangeFeed(deps);
    this.#watchDeps = { ...deps, resource: sandboxes, labelSelector: undefined };
  }

  async readTemplate(name: string, within: Deadline): Promise<TemplateReading> {
    if (!isObjectName(name) || name.length > templateNameMaxLength) throw badTemplateName(name);
    const parse = (body: unknown): TemplateReading =>
      withRevision(readTemplateObject(body, this.#disk), this.#runtimeClassName);
    const template = await this.#reader.read(this.#api.get(templates, name), parse, within);
    if (template === undefined) throw noTemplate(name, this.namespace);
    return template;
  }

  readSandbox(name: string, within: Deadline): Promise<SandboxReading | undefined> {
    return this.#reader.read(this.#api.get(sandboxes, name), (body) => this.#readingOf(body), within);
  }

  readPods(sandbox: Owner, within: Deadline): Promise<readonly PodReading[]> {
    return this.#owned.pods(sandbox, within);
  }

  async readClaims(sandbox: SandboxReading, within: Deadline): Promise<ClaimsReading> {
    return await this.#owned.claims(sandbox, claimTemplateNames(sandbox.claimTemplates), within);
  }

  async readRemains(gone: DeleteWish & { readonly entries: readonly string[] }, within: Deadline): Promise<Remains> {
    const [sandbox, pods, claims] = await Promise.all([
      this.readSandbox(gone.name, within),
      this.#owned.pods(gone, within),
      this.#owned.claimsLeft(gone, gone.entries, within),
    ]);
    return {
      sandbox: sandbox?.uid === gone.uid,
      pods: pods.flatMap(({ name, isStray }) => (isStray ? [] : [name])),
      claims,
    };
  }

  async createSandbox(wish: CreateWish, within: Deadline): Promise<CreateEnding> {
    const name = sandboxNameOf(wish.id);
    const object = composeSandbox(wish, this.namespace, this.#runtimeClassName);
    const confirm = (body: unknown): SandboxReading => {
      const written = this.#readingOf(body);
      if (written.name !== name || written.stamps.writtenBy !== wish.writtenBy) throw new Error(notOurs);
      if (!hasEpoch(written, wish.epoch)) throw new Error(notOurs);
      return written;
    };
    return await this.#writer.create(this.#api.create(sandboxes, name, object), confirm, within);
  }

  async setMode(wish: ModeWish, within: Deadline): Promise<WriteEnding<SandboxReading>> {
    const { reading } = wish;
    const confirm = (body: unknown): SandboxReading => {
      const written = this.#readingOf(body);
      const isOurs = written.uid === reading.uid && written.stamps.writtenBy === wish.writtenBy;
      if (!isOurs || written.mode !== wish.mode || !hasEpoch(written, wish.epoch)) throw new Error(notOurs);
      return written;
    };
    return await this.#writer.write(
      this.#api.patch(sandboxes, reading.name, composeModePatch(wish, this.#runtimeClassName)),
      confirm,
      within,
    );
  }

  async deleteSandbox(wish: DeleteWish, within: Deadline): Promise<WriteEnding<undefined>> {
    const { uid, resourceVersion } = wish;
    const attempt = this.#api.delete(sandboxes, wish.name, { uid, resourceVersion });
    const confirm = (body: unknown): undefined => void requireObject(body, "the answer to the delete");
    return await this.#writer.write(attempt, confirm, within);
  }

  refreshed(sandbox: SandboxReading, template: TemplateReading): RefreshedSandbox {
    return refreshedSandbox(sandbox, template, this.#disk, this.#runtimeClassName);
  }

  async deletePod({ name, uid, resourceVersion }: DeletePodWish, within: Deadline): Promise<WriteEnding<undefined>> {
    const attempt = this.#api.delete(pods, name, { uid, resourceVersion }, "Background");
    const confirm = (body: unknown): undefined => void requireObject(body, "the answer to the delete");
    return await this.#writer.write(attempt, confirm, within);
  }

  changes(sandboxName: string): Subscription {
    return this.#feed.subscribe(sandboxName);
  }

  hear(listener: (news: ClusterNews) => void): Disposable {
    return this.#feed.hear(listener);
  }

  async listSandboxes(page: ListWish, within: Deadline): Promise<ListPage> {
    return await this.#page(sandboxes, page, (body) => readWorkspacePage(body, this.#log), within);
  }

  watchSandboxes(wish: SandboxWatchWish, signal: AbortSignal): Promise<SandboxWatchEnd> {
    return watchSandboxObjects(this.#watchDeps, wish, AbortSignal.any([signal, this.#closed.signal]));
  }

  async listTemplates(page: ListWish, within: Deadline): Promise<TemplatePage> {
    return await this.#page(templates, page, (body) => readTemplatePage(body, this.#disk), within);
  }

  async #page<Page>(
    resource: Resource,
    page: ListWish,
    parse: (body: unknown) => Page,
    within: Deadline,
  ): Promise<Page> {
    const query = { limit: String(page.limit), continue: page.continueToken };
    const attempt = this.#api.list(resource, query);
    const found = await this.#reader.find(attempt, within);
    if (found.t === "found") return this.#reader.parse(attempt, found.body, parse);
    const status = found.t === "refused" ? found.answer.status : 404;
    if (page.continueToken !== undefined && (status === 410 || status === 400)) throw pageTokenExpired();
    throw found.t === "refused" ? found.error : new TypeError("a collection cannot be absent");
  }

  /** Ends the watches and every connection. What was in flight has no answer: a read throws, a write is unknown. */
  async close(): Promise<void> {
    this.#closed.abort(new Error("the client is closed"));
    const ended = this.#feed.close();
    this.#transport.close();
    await ended;
  }

  #readingOf(body: unknown): SandboxReading {
    return readSandboxObject(body, this.#disk);
  }
}

/** What was to be stored is stored: something on the way could have taken it off. */
function hasEpoch(written: SandboxReading, epoch: number | undefined): boolean {
  return epoch === undefined || written.stamps.holderEpoch === String(epoch);
}

const notOurs = "the server answered with an object that does not carry this write";

function namespaceFrom(namespace: string): string {
  if (!isObjectName(namespace)) throw new TypeError(`not a namespace: ${JSON.stringify(namespace)}`);
  return namespace;
}

function badTemplateName(name: string): HoldfastError {
  const description = `must be a Kubernetes name of at most ${templateNameMaxLength} characters; it becomes a label`;
  return new HoldfastError("INVALID_REQUEST", {
    message: `The template ${JSON.stringify(name.slice(0, 100))} ${description}. Nothing was sent.`,
    violations: [{ field: "template", description }],
  });
}

function noTemplate(name: string, namespace: string): HoldfastError {
  return new HoldfastError("WORKSPACE_NOT_FOUND", {
    message: `There is no SandboxTemplate ${name} in namespace ${namespace}. Nothing was created.`,
    metadata: { template: name, namespace },
  });
}

function pageTokenExpired(): HoldfastError {
  return new HoldfastError("PAGE_TOKEN_EXPIRED", {
    message: "The cluster no longer honours this page token. List again from the first page.",
  });
}
