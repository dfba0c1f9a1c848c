import { Broadcast, type Clock, type Deadline, type Subscription } from "@holdfast/async";
import { claimNameOf, type PodUid, sandboxNameOf, sandboxUidOf, type WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type {
  ClaimsReading,
  Cluster,
  ClusterNews,
  CreateEnding,
  CreateWish,
  DeletePodWish,
  DeleteWish,
  DiskVerdict,
  ListPage,
  ListWish,
  Mode,
  ModeWish,
  PodReading,
  RefreshedSandbox,
  Refusal,
  Remains,
  SandboxReading,
  SandboxWatchEnd,
  SandboxWatchWish,
  TemplatePage,
  TemplateReading,
  WriteEnding,
} from "@holdfast/workspace";
import {
  noStamps,
  readingOf,
  type SandboxSeed,
  type StoredPod,
  type StoredSandbox,
  usableDisk,
} from "./fake-cluster-objects.ts";
import { endPods, type Habits, newPod, reconcile } from "./fake-controller.ts";
import { FakeSandboxWatches } from "./fake-sandbox-watches.ts";
import { type Fault, FaultPlan } from "./fault-plan.ts";

/** The cluster port in memory, with a small faithful controller, faults on command, and a count of every request. */
export class FakeCluster implements Cluster {
  readonly plan = new FaultPlan();
  readonly watches = new FakeSandboxWatches();
  readonly habits: Habits = { controller: true, podsStart: true, podsEnd: true };
  readonly templates = new Map<string, TemplateReading>();
  /** Claims that may not be read (403). */
  readonly unreadableClaims = new Set<string>();
  /** Claim name → uid. */
  readonly claims = new Map<string, string>();
  /** What was written, as it was wished. */
  readonly sent: (CreateWish | ModeWish | DeleteWish | DeletePodWish)[] = [];
  /** False: those who hear of changes do not, as while a watch is broken off. */
  isHeard = true;
  readonly #clock: Clock;
  readonly #sandboxes = new Map<string, StoredSandbox>();
  readonly #broadcast = new Broadcast<string>();
  readonly #hearers = new Map<(news: ClusterNews) => void, Map<string, readonly StoredPod[]>>();
  readonly #late: (() => { readonly t: string })[] = [];
  #uids = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.addTemplate("small");
  }

  /** Puts a template there, or edits the one of that name. */
  addTemplate(name: string, disk: DiskVerdict = usableDisk, more: Partial<TemplateSeed> = {}): void {
    const { revision = "sha256:00", claims = ["disk"], runtimeClassName } = more;
    this.templates.set(name, { name, disk, revision, blueprint: { claims, runtimeClassName } satisfies FakeBlueprint });
  }

  /** Puts a Sandbox there, as another tool or an earlier process left it. */
  seed(id: WorkspaceId, seed: SandboxSeed = {}): StoredSandbox {
    const sandbox = this.#newSandbox(sandboxNameOf(id), seed);
    this.#sandboxes.set(sandbox.name, sandbox);
    this.#changed(sandbox, true);
    return sandbox;
  }

  /** The Sandbox of the workspace as it is stored. Throws when there is none. */
  stored(id: WorkspaceId): StoredSandbox {
    const sandbox = this.#sandboxes.get(sandboxNameOf(id));
    if (!sandbox) throw new Error(`no Sandbox stands for ${id}`);
    return sandbox;
  }

  stands(id: WorkspaceId): boolean {
    return this.#sandboxes.has(sandboxNameOf(id));
  }

  /** Its pods; a pod may be changed in place, followed by `wake`. */
  pods(id: WorkspaceId): readonly StoredPod[] {
    return this.#sandboxes.get(sandboxNameOf(id))?.pods ?? [];
  }

  /** The pod with this uid, whoever owns it. */
  podOf(uid: PodUid): StoredPod | undefined {
    for (const { pods } of this.#sandboxes.values()) {
      const pod = pods.find((one) => one.uid === uid);
      if (pod) return pod;
    }
    return undefined;
  }

  /** Wakes whoever waits for a change of it. */
  wake(id: WorkspaceId): void {
    this.#wake(sandboxNameOf(id));
  }

  /** The controller looks once, whatever its habit is. */
  observe(id: WorkspaceId): void {
    reconcile(this.stored(id), this.habits);
    this.wake(id);
  }

  /** Every dying pod goes; the controller looks again if that is its habit. */
  endPods(id: WorkspaceId): void {
    const sandbox = this.stored(id);
    endPods(sandbox);
    if (this.habits.controller) reconcile(sandbox, this.habits);
    this.wake(id);
  }

  /** The pod is replaced by another one of the same owner, as after a node's loss. */
  replacePod(id: WorkspaceId): StoredPod {
    const sandbox = this.stored(id);
    const pod = newPod(sandbox, { ...this.habits, podsStart: true });
    sandbox.pods = [pod];
    this.wake(id);
    return pod;
  }

  /** The same pod runs again under another address, as after its node was started anew. */
  movePod(id: WorkspaceId, ip: string): StoredPod {
    const sandbox = this.stored(id);
    const [first, ...others] = sandbox.pods;
    if (!first) throw new Error(`${id} has no pod`);
    const pod = { ...first, ip };
    sandbox.pods = [pod, ...others];
    this.wake(id);
    return pod;
  }

  /** Somebody else changes the mode, with a written-by of theirs. */
  foreignMode(id: WorkspaceId, mode: Mode): void {
    const sandbox = this.stored(id);
    this.#uids += 1;
    this.#write(sandbox, { mode, writtenBy: `foreign-${this.#uids}`, now: this.#clock.now() });
  }

  /** A tool of another contract stores an epoch, and touches nothing else. */
  foreignFence(id: WorkspaceId, epoch: number): void {
    const sandbox = this.stored(id);
    sandbox.stamps.holderEpoch = String(epoch);
    sandbox.resourceVersion = String(Number(sandbox.resourceVersion) + 1);
    this.#changed(sandbox);
  }

  /** Somebody else deletes it, at once and with all that belongs to it. */
  foreignDelete(id: WorkspaceId): void {
    this.#remove(sandboxNameOf(id));
    this.#deleteClaims(sandboxNameOf(id));
    this.wake(id);
  }

  /** Lets requests that were sent and not answered arrive now. Says how each ended. */
  deliverLate(): string[] {
    return this.#late.splice(0).map((arrive) => arrive().t);
  }

  async readTemplate(name: string, within: Deadline): Promise<TemplateReading> {
    await this.plan.arriveRead("readTemplate", within);
    const template = this.templates.get(name);
    if (template) return template;
    throw new HoldfastError("WORKSPACE_NOT_FOUND", {
      message: `no SandboxTemplate ${name}`,
      metadata: { template: name },
    });
  }

  async readSandbox(name: string, within: Deadline): Promise<SandboxReading | undefined> {
    await this.plan.arriveRead("readSandbox", within);
    const sandbox = this.#sandboxes.get(name);
    return sandbox && readingOf(sandbox);
  }

  async readPods(of: Pick<SandboxReading, "name" | "uid">, within: Deadline): Promise<readonly PodReading[]> {
    await this.plan.arriveRead("readPods", within);
    const sandbox = this.#sandboxes.get(of.name);
    return sandbox?.uid === of.uid ? sandbox.pods.map((pod) => ({ ...pod })) : [];
  }

  async readClaims(sandbox: SandboxReading, within: Deadline): Promise<ClaimsReading> {
    await this.plan.arriveRead("readClaims", within);
    const uids: Record<string, string> = {};
    const lost: string[] = [];
    for (const entry of sandbox.claimTemplates as readonly string[]) {
      const name = claimNameOf(entry, sandbox.name);
      if (this.unreadableClaims.has(name)) continue;
      const uid = this.claims.get(name);
      if (uid === undefined) lost.push(name);
      else uids[name] = uid;
    }
    return { uids, lost };
  }

  async readRemains(gone: DeleteWish & { readonly entries: readonly string[] }, within: Deadline): Promise<Remains> {
    await this.plan.arriveRead("readRemains", within);
    const sandbox = this.#sandboxes.get(gone.name);
    const ours = sandbox?.uid === gone.uid;
    const claims = gone.entries.map((entry) => claimNameOf(entry, gone.name)).filter((name) => this.claims.has(name));
    return { sandbox: ours, pods: ours ? sandbox.pods.map(({ name }) => name) : [], claims };
  }

  async createSandbox(wish: CreateWish, within: Deadline): Promise<CreateEnding> {
    this.sent.push(wish);
    return await this.#carryOut("createSandbox", within, () => this.#create(wish));
  }

  async setMode(wish: ModeWish, within: Deadline): Promise<WriteEnding<SandboxReading>> {
    this.sent.push(wish);
    return await this.#carryOut("setMode", within, () => this.#patch(wish));
  }

  async deleteSandbox(wish: DeleteWish, within: Deadline): Promise<WriteEnding<undefined>> {
    this.sent.push(wish);
    return await this.#carryOut("deleteSandbox", within, () => this.#delete(wish));
  }

  refreshed(sandbox: SandboxReading, template: TemplateReading): RefreshedSandbox {
    const { claims, runtimeClassName } = template.blueprint as FakeBlueprint;
    const has = sandbox.claimTemplates as readonly string[];
    return {
      disk: template.disk,
      runtimeClassName,
      extraClaims: claims.filter((name) => !has.includes(name)),
      droppedClaims: has.filter((name) => !claims.includes(name)),
    };
  }

  async deletePod(wish: DeletePodWish, within: Deadline): Promise<WriteEnding<undefined>> {
    this.sent.push(wish);
    return await this.#carryOut("deletePod", within, () => this.#deletePod(wish));
  }

  changes(sandboxName: string): Subscription {
    return this.#broadcast.subscribe(sandboxName);
  }

  hear(listener: (news: ClusterNews) => void): Disposable {
    this.#hearers.set(listener, new Map([...this.#sandboxes].map(([name, { pods }]) => [name, [...pods]])));
    return { [Symbol.dispose]: () => void this.#hearers.delete(listener) };
  }

  /** How many hear of every change. */
  get hearers(): number {
    return this.#hearers.size;
  }

  /** Tells those who hear that anything may have happened, as a watch that broke off does. */
  tellMissed(): void {
    for (const tell of [...this.#hearers.keys()]) tell({ t: "missed" });
  }

  #wake(name: string): void {
    this.#broadcast.wake(name);
    const sandbox = this.#sandboxes.get(name);
    for (const [tell, known] of [...this.#hearers]) {
      const before = known.get(name);
      if (sandbox) known.set(name, [...sandbox.pods]);
      else known.delete(name);
      if (this.isHeard) for (const news of newsOf(name, sandbox, before)) tell(news);
    }
  }

  /** How many wait for changes. */
  get subscriptions(): number {
    return this.#broadcast.size;
  }

  async listSandboxes({ limit, continueToken }: ListWish, within: Deadline): Promise<ListPage> {
    await this.plan.arriveRead("listSandboxes", within);
    const all = [...this.#sandboxes.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(readingOf);
    const from = Number(continueToken ?? 0);
    const next = from + limit;
    return {
      sandboxes: all.slice(from, next),
      continueToken: next < all.length ? String(next) : undefined,
      version: this.watches.version,
    };
  }

  watchSandboxes(wish: SandboxWatchWish, signal: AbortSignal): Promise<SandboxWatchEnd> {
    return this.watches.watch(wish, signal);
  }

  async listTemplates({ limit, continueToken }: ListWish, within: Deadline): Promise<TemplatePage> {
    await this.plan.arriveRead("listTemplates", within);
    const from = Number(continueToken ?? 0);
    const page = [...this.templates.values()].slice(from, from + limit);
    return {
      templates: page.map(({ name, disk }) => ({ name, disk, image: "holdfast/guest-agent:test" })),
      continueToken: from + limit < this.templates.size ? String(from + limit) : undefined,
    };
  }

  async #carryOut<Ending extends { readonly t: string }>(
    verb: "createSandbox" | "setMode" | "deleteSandbox" | "deletePod",
    within: Deadline,
    act: () => Ending,
  ): Promise<Ending | { readonly t: "unknown"; readonly cause: unknown } | WriteEnding<never>> {
    let fault: Fault | undefined;
    try {
      fault = await this.plan.arrive(verb, within);
    } catch (cause) {
      return { t: "unknown", cause };
    }
    if (fault === "refuse") return refused("other", "the fake cluster refused");
    if (fault === "never-arrived") return noAnswer();
    if (fault === "reply-lost") {
      act();
      return noAnswer();
    }
    if (fault === "late") {
      this.#late.push(act);
      return noAnswer();
    }
    return act();
  }

  #create(wish: CreateWish): CreateEnding {
    const name = sandboxNameOf(wish.id);
    if (this.#sandboxes.has(name)) return { t: "exists" };
    const { createdBy, writtenBy, template } = wish;
    const sandbox = this.#newSandbox(name, {
      template: template.name,
      disk: template.disk,
      stamps: { createdBy, writtenBy, podTemplateHash: template.revision, holderEpoch: epochText(wish.epoch) },
    });
    this.#sandboxes.set(name, sandbox);
    const written = readingOf(sandbox);
    this.#changed(sandbox, true);
    return { t: "applied", value: written };
  }

  #patch(wish: ModeWish): WriteEnding<SandboxReading> {
    const sandbox = this.#sandboxes.get(wish.reading.name);
    if (!sandbox) return refused("absent", "no such Sandbox");
    if (!this.#testsHold(sandbox, wish)) return refused("condition", "a test of the patch failed");
    return { t: "applied", value: this.#write(sandbox, wish) };
  }

  #testsHold(sandbox: StoredSandbox, { reading, mode }: ModeWish): boolean {
    const { stamps } = reading;
    const allStamps =
      stamps.modeChangedAt !== undefined && stamps.writtenBy !== undefined && stamps.holderEpoch !== undefined;
    return (
      sandbox.uid === reading.uid &&
      (stamps.modeChangedAt === undefined || sandbox.stamps.modeChangedAt === stamps.modeChangedAt) &&
      (stamps.writtenBy === undefined || sandbox.stamps.writtenBy === stamps.writtenBy) &&
      (stamps.holderEpoch === undefined || sandbox.stamps.holderEpoch === stamps.holderEpoch) &&
      (allStamps || sandbox.resourceVersion === reading.resourceVersion) &&
      !(reading.mode === "Suspended" && mode === "Running" && sandbox.mode !== "Suspended")
    );
  }

  #write(
    sandbox: StoredSandbox,
    wish: Pick<ModeWish, "mode" | "writtenBy" | "now" | "epoch"> &
      Partial<Pick<ModeWish, "volumeClaimUids" | "refresh">>,
  ): SandboxReading {
    sandbox.stamps.writtenBy = wish.writtenBy;
    sandbox.stamps.holderEpoch = epochText(wish.epoch) ?? sandbox.stamps.holderEpoch;
    if (wish.refresh) {
      sandbox.stamps.podTemplateHash = wish.refresh.revision;
      sandbox.disk = wish.refresh.disk;
      sandbox.runtimeClassName = (wish.refresh.blueprint as FakeBlueprint).runtimeClassName;
    }
    if (wish.volumeClaimUids) {
      const pairs = Object.entries(wish.volumeClaimUids).map(([claim, uid]) => `${claim}=${uid}`);
      sandbox.stamps.volumeClaimUids = pairs.join(",");
    }
    if (sandbox.mode !== wish.mode) {
      sandbox.mode = wish.mode;
      sandbox.generation += 1;
      const last = Date.parse(sandbox.stamps.modeChangedAt ?? "") || 0;
      sandbox.stamps.modeChangedAt = new Date(Math.max(wish.now, last + 1)).toISOString();
    }
    sandbox.resourceVersion = String(Number(sandbox.resourceVersion) + 1);
    const written = readingOf(sandbox);
    this.#changed(sandbox);
    return written;
  }

  #delete(wish: DeleteWish): WriteEnding<undefined> {
    const sandbox = this.#sandboxes.get(wish.name);
    if (!sandbox) return refused("absent", "no such Sandbox");
    if (sandbox.uid !== wish.uid || sandbox.resourceVersion !== wish.resourceVersion) {
      return refused("condition", "a precondition failed");
    }
    sandbox.deleting = true;
    sandbox.resourceVersion = String(Number(sandbox.resourceVersion) + 1);
    for (const pod of sandbox.pods) pod.deleting = true;
    if (this.habits.podsEnd) this.collect(sandbox.name);
    this.#wake(sandbox.name);
    return { t: "applied", value: undefined };
  }

  #deletePod({ uid, resourceVersion }: DeletePodWish): WriteEnding<undefined> {
    const pod = this.podOf(uid);
    const owner = [...this.#sandboxes.values()].find(({ pods }) => pods.some((one) => one.uid === uid));
    if (!pod || !owner) return refused("absent", "no such pod");
    if (pod.resourceVersion !== resourceVersion) return refused("condition", "a precondition failed");
    pod.deleting = true;
    if (this.habits.podsEnd) endPods(owner);
    if (this.habits.controller) reconcile(owner, this.habits);
    this.#wake(owner.name);
    return { t: "applied", value: undefined };
  }

  /** The garbage collector: what is being deleted goes, with its pods and claims. */
  collect(name: string): void {
    if (!this.#sandboxes.get(name)?.deleting) return;
    this.#remove(name);
    this.#deleteClaims(name);
    this.#wake(name);
  }

  #deleteClaims(name: string): void {
    for (const claim of [...this.claims.keys()]) if (claim.endsWith(`-${name}`)) this.claims.delete(claim);
  }

  #remove(name: string): void {
    const sandbox = this.#sandboxes.get(name);
    this.#sandboxes.delete(name);
    if (sandbox) this.watches.gone(readingOf(sandbox));
  }

  #changed(sandbox: StoredSandbox, isNew = false): void {
    if (this.habits.controller) {
      reconcile(sandbox, this.habits);
      if (this.habits.podsEnd && endPods(sandbox)) reconcile(sandbox, this.habits);
    }
    this.watches.stands(readingOf(sandbox), isNew);
    this.#wake(sandbox.name);
  }

  #newSandbox(name: string, seed: SandboxSeed): StoredSandbox {
    this.#uids += 1;
    const disk = seed.disk ?? usableDisk;
    for (const claim of claimNames(disk, name)) this.claims.set(claim, `claim-${this.#uids}`);
    return {
      name,
      uid: sandboxUidOf(`sandbox-${this.#uids}`),
      resourceVersion: "1",
      generation: 1,
      observedGeneration: 0,
      mode: seed.mode ?? "Running",
      deleting: seed.deleting ?? false,
      createdAt: new Date(this.#clock.now()),
      stamps: { ...noStamps, ...seed.stamps },
      template: "template" in seed ? seed.template : "small",
      runtimeClassName: seed.runtimeClassName,
      serviceHost: `${name}.team-a.svc.cluster.local`,
      disk,
      claimTemplates: disk.usable ? disk.entries : [],
      shutdown: seed.shutdown,
      pods: [],
    };
  }
}

/** As a watch would say it: the object as it stands, and pods that were there before and are not any more. */
function newsOf(
  name: string,
  sandbox: StoredSandbox | undefined,
  before: readonly StoredPod[] | undefined,
): ClusterNews[] {
  const podNews = (pod: StoredPod, gone: boolean): ClusterNews => ({
    t: "pod",
    name,
    pod: { ...pod, waits: pod.phase === "Pending" && pod.node !== undefined },
    gone,
  });
  const left = (before ?? []).filter(({ uid }) => !sandbox?.pods.some((pod) => pod.uid === uid));
  const gone = left.map((pod) => podNews(pod, true));
  if (!sandbox) return [...gone, { t: "changed", name }];
  const { uid, mode, deleting, stamps, pods } = sandbox;
  const happened = before === undefined ? "added" : "modified";
  return [
    { t: "sandbox", name, uid, mode, deleting, holderEpoch: stamps.holderEpoch, happened },
    ...gone,
    ...pods.map((pod) => podNews(pod, false)),
  ];
}

/** What a test says of a template; the rest is as an ordinary one has it. */
export interface TemplateSeed extends FakeBlueprint {
  readonly revision: string;
}

interface FakeBlueprint {
  /** The names of its volumeClaimTemplates. */
  readonly claims: readonly string[];
  readonly runtimeClassName: string | undefined;
}

function claimNames(disk: DiskVerdict, name: string): string[] {
  return disk.usable ? disk.entries.map((entry) => claimNameOf(entry, name)) : [];
}

function epochText(epoch: number | undefined): string | undefined {
  return epoch === undefined ? undefined : String(epoch);
}

function noAnswer(): { readonly t: "unknown"; readonly cause: unknown } {
  return { t: "unknown", cause: new Error("no answer came") };
}

function refused(why: Refusal, message: string): WriteEnding<never> {
  const reason = why === "absent" ? "WORKSPACE_NOT_FOUND" : "CLUSTER_WRITE_REFUSED";
  return { t: "refused", why, error: new HoldfastError(reason, { message }) };
}
