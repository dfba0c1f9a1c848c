import { randomUUID } from "node:crypto";
import { systemClock } from "@holdfast/async";
import { sandboxNameOf, type WorkspaceId } from "@holdfast/contract";
import { Watching, type WorkspaceRegistry } from "@holdfast/control-plane";
import { type EmbeddedCluster, HttpResourceApi, type KubeObject, readKubeconfig } from "@holdfast/embedded-cluster";
import { guestDialler } from "@holdfast/guest-client";
import { KubeCluster, kubeConfigFrom, Transport } from "@holdfast/kube";
import { workspaceId } from "@holdfast/testkit";
import type { CallHost } from "../callers.ts";
import type { ForeignHost } from "../foreign.ts";
import type { Judged } from "../judge/judged.ts";
import type { Answered, SentRequest } from "../world/api-transport.ts";
import type { CallRecord } from "../world/calls.ts";
import { History } from "../world/history.ts";
import type { Effect } from "../world/model-guests.ts";
import { objectNames } from "../world/object-names.ts";
import { SeenStates } from "../world/seen-states.ts";
import { WriteLog } from "../world/write-log.ts";
import { WitnessedTransport } from "./witnessed-transport.ts";

const lookEveryMs = 20;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined, debug: () => undefined };

interface RealReplica {
  readonly watching: Watching;
  readonly cluster: KubeCluster;
}

/** One workspace on an embedded cluster whose pods run real agents, and two replicas that use it, on the wall clock. */
export class RealWorld implements CallHost, ForeignHost, Judged {
  readonly workspace: WorkspaceId;
  readonly sandboxName: string;
  readonly longCommand = { command: "sleep", args: ["300"] };
  readonly history: History;
  readonly writes = new WriteLog();
  readonly calls: CallRecord[] = [];
  readonly states = new SeenStates();
  readonly somebody: HttpResourceApi;
  readonly node: EmbeddedCluster["faults"]["node"];
  readonly faults: EmbeddedCluster["faults"];
  /** What is noted here of versions comes from a watch that may be late: the changes of a second or so. */
  readonly revisionSlack = 60;
  lostClaims = 0;
  readonly #kubeconfigPath: string;
  readonly #probe: "refuse" | "report";
  readonly #replicas: RealReplica[] = [];
  readonly #effects: Effect[] = [];
  readonly #pending: Promise<void>[] = [];
  readonly #looking: NodeJS.Timeout;
  readonly #tell: (text: string) => void;
  #order = 0;

  private constructor(cluster: EmbeddedCluster, name: string, tell: (text: string) => void) {
    this.workspace = workspaceId(name);
    this.sandboxName = sandboxNameOf(this.workspace);
    this.history = new History(this.sandboxName);
    this.somebody = new HttpResourceApi(readKubeconfig(cluster.kubeconfigPath));
    this.node = cluster.faults.node;
    this.faults = cluster.faults;
    this.#kubeconfigPath = cluster.kubeconfigPath;
    this.#probe = cluster.isolation === "namespaces" ? "refuse" : "report";
    this.#tell = tell;
    this.#looking = setInterval(() => this.#look(), lookEveryMs);
  }

  static async start(cluster: EmbeddedCluster, name: string, tell: (text: string) => void): Promise<RealWorld> {
    const world = new RealWorld(cluster, name, tell);
    world.history.follow(world.somebody, await world.#versionNow());
    world.#replicas.push(world.#replica(0), world.#replica(1));
    return world;
  }

  get guests(): Judged["guests"] {
    return { effects: this.#effects, programs: [] };
  }

  now(): number {
    return Date.now();
  }

  registryOf(replica: number): WorkspaceRegistry {
    const one = this.#replicas[replica];
    if (!one) throw new RangeError(`there is no replica ${replica}`);
    return one.watching.registry;
  }

  revision(): number {
    return this.history.revision;
  }

  nextOrder(): number {
    this.#order += 1;
    return this.#order;
  }

  later(ms: number, run: () => void): void {
    setTimeout(run, ms);
  }

  tell(text: string): void {
    this.#tell(text);
  }

  /** Until when its answer may have been true: what the server stands at now. */
  answered(call: CallRecord): void {
    const noted = this.#versionNow().then((version) => {
      call.toRevision = Number(version);
      if (call.verb === "execute" || call.verb === "program") this.#noteEffect(call);
    });
    noted.catch(() => undefined); // Of one that nobody waits for any more, when the cluster has stopped.
    this.#pending.push(noted);
  }

  /** Ends a replica as a kill does, and starts another in its place. */
  restart(number: number): void {
    this.#end(number);
    for (const call of this.calls) {
      if (call.replica === number && call.answer === undefined) call.isAbandoned = true;
    }
    this.#replicas[number] = this.#replica(number);
  }

  /** All answers are noted, and the watch has told of all that they are about. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
    const until = Number(await this.#versionNow());
    await this.#caughtUp(until);
  }

  async stop(): Promise<void> {
    clearInterval(this.#looking);
    this.#end(0);
    this.#end(1);
    this.history.stop();
    const place = { resource: objectNames.sandboxes, namespace: "default", name: this.sandboxName };
    await this.somebody.delete(place, { propagationPolicy: "Background" }).catch(() => undefined);
  }

  /** A command that was answered had its effect at some time of its call: it is judged as if at its beginning. */
  #noteEffect(call: CallRecord): void {
    const { fromOrder, epoch, answer, fromRevision, toRevision = fromRevision, id } = call;
    if (answer?.t !== "ok") return;
    const moments = this.history.between(fromRevision, toRevision);
    const owners = new Set(moments.map(({ sandbox }) => sandbox?.metadata.uid));
    const [owner] = owners;
    if (owners.size !== 1 || owner === undefined) return; // Which of them it was done in is not known here.
    const pod = `of call ${id}`;
    this.#effects.push({ pod, verb: "execute", epoch, call, name: this.sandboxName, owner, order: fromOrder });
  }

  #replica(number: number): RealReplica {
    const sentAt = new WeakMap<SentRequest, number>();
    this.states.begin(number);
    const witness = {
      sent: (request: SentRequest): void => {
        sentAt.set(request, this.revision());
        this.writes.sent(request, number, this.revision());
        this.states.asked(number, this.revision());
      },
      answered: (request: SentRequest, answer: Answered): void => {
        const object = answer.t === "ok" ? (answer.body as KubeObject) : undefined;
        this.writes.answered(request, answer.t, sentAt.get(request) ?? 0, object);
        this.#look();
        this.tell(`r${number} ${request.method} ${request.plural} ${answer.t}`);
      },
    };
    const transport = new Transport(kubeConfigFrom({ kubeconfigPath: this.#kubeconfigPath }), systemClock);
    const cluster = new KubeCluster(new WitnessedTransport(transport, witness), { disk: "filesystem", log: silent });
    const watching = new Watching({
      cluster,
      guests: guestDialler(systemClock),
      clock: systemClock,
      randomId: randomUUID,
      policy: {
        defaultTemplate: "default",
        disk: "filesystem",
        probe: this.#probe,
        ingress: "unverified",
        runtimeClassName: undefined,
      },
      log: silent,
    });
    return { watching, cluster };
  }

  #end(number: number): void {
    const { watching, cluster } = this.#replicas[number] ?? {};
    watching?.close();
    void cluster?.close();
  }

  #look(): void {
    for (const number of this.#replicas.keys()) {
      this.states.seen(number, this.registryOf(number).stateOf(this.workspace) ?? "none", this.revision());
    }
  }

  async #versionNow(): Promise<string> {
    const { resourceVersion } = await this.somebody.list(objectNames.sandboxes, "default");
    return resourceVersion;
  }

  /** The watch tells of everything in its order: a change of ours that it has told of is behind all before. */
  async #caughtUp(revision: number): Promise<void> {
    const place = { resource: objectNames.pods, namespace: "default", name: `${this.sandboxName}-mark-${revision}` };
    const { resource: _, ...named } = place;
    await this.somebody.create(objectNames.pods, "default", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: named,
      spec: { nodeName: "a-node-that-nobody-keeps", containers: [{ name: "none", image: "none" }] },
    });
    while (!this.history.knows(named.name)) await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
    await this.somebody.delete(place, { gracePeriodSeconds: 0 });
  }
}
