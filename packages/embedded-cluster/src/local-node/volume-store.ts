import type { Logger } from "pino";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { bindClaim, foreignTo } from "./claim-binder.ts";
import { removeDisk } from "./disk-folder.ts";
import { type Follower, sleep } from "./follow.ts";
import { HeldDisks, type HeldVolume } from "./held-disks.ts";
import type { Isolation } from "./isolation.ts";
import type { NodePaths } from "./node-paths.ts";
import { sortOrphanDisks } from "./orphan-disks.ts";

interface Options {
  readonly api: ResourceApi;
  readonly paths: NodePaths;
  readonly isolation: Isolation;
  readonly nodeUid: string;
  /** The version at which the store was opened, where that is known: what it wrote since proves nothing of before. */
  readonly storeOpenedAt?: number | undefined;
  readonly log: Logger;
  /** Ends what waits to be tried again. */
  readonly signal: AbortSignal;
}

const bindRetryMs = 1_000;

/**
 * Disks of persistent volume claims: a folder each, made when a claim appears, removed when its claim is known to be
 * deleted. A folder without a claim is otherwise kept and reported; a claim that is another's to provide for is left alone.
 */
export class VolumeStore implements Follower {
  readonly #options: Options;
  /** Claims that exist, by namespace and name. */
  readonly #claims = new Map<string, KubeObject>();
  /** Uids whose disk is there and whose claim says Bound. */
  readonly #bound = new Set<string>();
  /** Uids whose claim said Bound and whose disk is not there. */
  readonly #lost = new Set<string>();
  readonly #held: HeldDisks;
  /** Deleted claims whose disk a pod still uses. */
  readonly #doomed = new Set<string>();
  /** Work per claim, so that making and removing one disk never overlap. */
  readonly #work = new Map<string, Promise<void>>();
  #changed = Promise.withResolvers<void>();
  #sorted = false;

  constructor(options: Options) {
    this.#options = options;
    this.#held = new HeldDisks({
      pathOf: (uid) => options.paths.volume(uid),
      onLeft: () => this.#announce(),
      onFree: (uid) => {
        if (this.#doomed.delete(uid)) this.#queue(uid, () => removeDisk(options.paths, uid));
      },
    });
  }

  /**
   * Waits until the claim is bound, and holds its disk. Undefined when the signal aborts first. A pod that is not
   * scheduled yet does not get a claim that is being deleted.
   */
  async hold(
    { namespace, name, scheduled }: { namespace: string; name: string; scheduled: boolean },
    onWait: (why: string) => void,
    signal: AbortSignal,
  ): Promise<HeldVolume | undefined> {
    let said: string | undefined;
    while (!signal.aborted) {
      const claim = this.#claims.get(`${namespace}/${name}`);
      const uid = claim?.metadata.uid;
      const mayUse = scheduled || claim?.metadata.deletionTimestamp === undefined;
      if (uid !== undefined && this.#bound.has(uid) && mayUse && !this.#held.isBeingLeft(uid))
        return this.#held.hold(uid);
      const why = this.#whyNot(name, claim);
      if (why !== said) onWait(why);
      said = why;
      await firstOf(this.#changed.promise, signal);
    }
    return undefined;
  }

  /** Keeps these disks from every pod, and from being removed, until the answer is called: something may still write to them. */
  occupy(uids: readonly string[]): () => void {
    const held = uids.filter((uid) => isFileName(uid)).map((uid) => this.#held.hold(uid));
    for (const disk of held) disk.leave();
    return () => {
      for (const disk of held) disk.release();
    };
  }

  #whyNot(name: string, claim: KubeObject | undefined): string {
    if (claim === undefined) return `persistentvolumeclaim "${name}" not found`;
    if (claim.metadata.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
    const uid = claim.metadata.uid ?? "";
    if (this.#held.isBeingLeft(uid))
      return `persistentvolumeclaim "${name}" is still used by a deleted pod that is ending`;
    if (this.#lost.has(uid))
      return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume: its disk is missing`;
    const foreign = foreignTo(claim);
    return foreign === undefined
      ? `persistentvolumeclaim "${name}" is not bound yet`
      : `persistentvolumeclaim "${name}" ${foreign}, which this node does not provide: it provides for claims that name neither a volume nor a class`;
  }

  async onList(items: readonly KubeObject[], resourceVersion: string): Promise<void> {
    const uids = new Set(items.map((item) => item.metadata.uid));
    for (const claim of [...this.#claims.values()]) if (!uids.has(claim.metadata.uid)) this.onGone(claim);
    if (!this.#sorted) {
      const { paths, nodeUid, log, storeOpenedAt } = this.#options;
      const provenUpTo = storeOpenedAt ?? Number.parseInt(resourceVersion, 10);
      await sortOrphanDisks({ paths, nodeUid, provenUpTo, uids, log, remove: (uid) => this.#removeOrDoom(uid) });
      this.#sorted = true;
    }
    for (const item of items) this.onChange(item);
  }

  onChange(claim: KubeObject): void {
    const uid = claim.metadata.uid ?? "";
    const { log } = this.#options;
    if (!isFileName(uid)) {
      log.error({ uid }, "a claim's uid is no file name; it gets no disk");
      return;
    }
    this.#claims.set(keyOf(claim), claim);
    if (this.#bound.has(uid)) return;
    this.#queue(uid, async () => {
      await this.#bindStubbornly(keyOf(claim), uid);
      this.#announce();
    });
    this.#announce();
  }

  onGone(claim: KubeObject): void {
    const uid = claim.metadata.uid ?? "";
    if (this.#claims.get(keyOf(claim))?.metadata.uid === uid) this.#claims.delete(keyOf(claim));
    if (!isFileName(uid)) return;
    this.#bound.delete(uid);
    this.#lost.delete(uid);
    if (this.#held.has(uid)) this.#doomed.add(uid);
    else this.#queue(uid, () => removeDisk(this.#options.paths, uid));
  }

  /** Resolves when no disk is being made or removed. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work.values());
  }

  /** Tries until the claim is bound, known to be lost or another's, or gone. */
  async #bindStubbornly(key: string, uid: string): Promise<void> {
    const { log, signal } = this.#options;
    while (!signal.aborted) {
      if (this.#bound.has(uid) || this.#lost.has(uid)) return;
      const claim = this.#claims.get(key); // as it now is: another may have bound it meanwhile
      if (claim?.metadata.uid !== uid) return;
      try {
        const binding = await bindClaim(this.#options, claim, uid);
        if (binding === "bound") this.#bound.add(uid);
        if (binding === "lost") this.#lost.add(uid);
        if (binding === "foreign") return;
      } catch (error) {
        log.error({ err: error, claim: key }, "a claim got no disk; trying again");
        await sleep(bindRetryMs, signal);
      }
    }
  }

  async #removeOrDoom(uid: string): Promise<void> {
    if (this.#held.has(uid)) this.#doomed.add(uid);
    else await removeDisk(this.#options.paths, uid);
  }

  #queue(uid: string, work: () => Promise<void>): void {
    const before = this.#work.get(uid) ?? Promise.resolve();
    const after = before.then(work).catch((error: unknown) => {
      this.#options.log.error({ err: error, uid }, "a disk could not be made or removed");
    });
    this.#work.set(uid, after);
    after.then(() => {
      if (this.#work.get(uid) === after) this.#work.delete(uid);
    });
  }

  #announce(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** A uid names a folder. */
function isFileName(uid: string): boolean {
  return /^[\w-]+$/.test(uid);
}

function keyOf(claim: KubeObject): string {
  return `${claim.metadata.namespace}/${claim.metadata.name}`;
}

function firstOf(changed: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      signal.removeEventListener("abort", end);
      resolve();
    };
    signal.addEventListener("abort", end, { once: true });
    changed.then(end);
  });
}
