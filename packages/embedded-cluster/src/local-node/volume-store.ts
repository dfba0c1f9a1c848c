import { chown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { isOfAnother } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { type Follower, sleep } from "./follow.ts";
import { type Isolation, ownerOutside } from "./isolation.ts";
import { recordOf, textOf, textsOf } from "./json-shape.ts";
import type { NodePaths } from "./node-paths.ts";
import { claims, refOf } from "./resources.ts";

/** A disk in use by a pod. It is not removed before `release`, even when its claim is. */
export interface HeldVolume {
  readonly path: string;
  /** The claim's. */
  readonly uid: string;
  /** Says that the pod's object is gone while its processes may still end: no other pod is given the disk before `release`. */
  leave(): void;
  release(): void;
}

/** Beside each disk: whose it is, and what proves that its claim existed in this very store. */
interface ClaimRecord {
  readonly namespace: string;
  readonly name: string;
  /** The uid of the Node object: another store has another one. */
  readonly store: string;
  readonly resourceVersion: string;
  /** Written when the disk was found without its claim and nothing proved a deletion: from then on nothing will. */
  readonly kept?: true;
}

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
 * deleted. A folder without a claim is otherwise kept and reported.
 */
export class VolumeStore implements Follower {
  readonly #options: Options;
  /** Claims that exist, by namespace and name. */
  readonly #claims = new Map<string, KubeObject>();
  /** Uids whose disk is there and whose claim says Bound. */
  readonly #bound = new Set<string>();
  /** Uids whose claim said Bound and whose disk is not there. */
  readonly #lost = new Set<string>();
  readonly #holds = new Map<string, number>();
  /** Holds of pods whose objects are gone already, by uid. */
  readonly #leaving = new Map<string, number>();
  /** Deleted claims whose disk a pod still uses. */
  readonly #doomed = new Set<string>();
  /** Work per claim, so that making and removing one disk never overlap. */
  readonly #work = new Map<string, Promise<void>>();
  #changed = Promise.withResolvers<void>();
  #sorted = false;

  constructor(options: Options) {
    this.#options = options;
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
      if (uid !== undefined && this.#bound.has(uid) && mayUse && !this.#leaving.has(uid)) return this.#holdDisk(uid);
      const why = this.#whyNot(name, claim);
      if (why !== said) onWait(why);
      said = why;
      await firstOf(this.#changed.promise, signal);
    }
    return undefined;
  }

  /** Keeps these disks from every pod, and from being removed, until the answer is called: something may still write to them. */
  occupy(uids: readonly string[]): () => void {
    const held = uids.filter((uid) => isFileName(uid)).map((uid) => this.#holdDisk(uid));
    for (const disk of held) disk.leave();
    return () => {
      for (const disk of held) disk.release();
    };
  }

  #whyNot(name: string, claim: KubeObject | undefined): string {
    if (claim === undefined) return `persistentvolumeclaim "${name}" not found`;
    if (claim.metadata.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
    const uid = claim.metadata.uid ?? "";
    if (this.#leaving.has(uid)) return `persistentvolumeclaim "${name}" is still used by a deleted pod that is ending`;
    return this.#lost.has(uid)
      ? `persistentvolumeclaim "${name}" bound to non-existent persistentvolume: its disk is missing`
      : `persistentvolumeclaim "${name}" is not bound yet`;
  }

  async onList(items: readonly KubeObject[], resourceVersion: string): Promise<void> {
    const uids = new Set(items.map((item) => item.metadata.uid));
    for (const claim of [...this.#claims.values()]) if (!uids.has(claim.metadata.uid)) this.onGone(claim);
    if (!this.#sorted) {
      await this.#sortOrphans(uids, resourceVersion);
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
      await this.#bindStubbornly(claim, uid);
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
    if (this.#holds.has(uid)) this.#doomed.add(uid);
    else this.#queue(uid, () => this.#remove(uid));
  }

  /** Resolves when no disk is being made or removed. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work.values());
  }

  /** Tries until the claim is bound, known to be lost, or gone. */
  async #bindStubbornly(claim: KubeObject, uid: string): Promise<void> {
    const { log, signal } = this.#options;
    while (!signal.aborted) {
      if (this.#bound.has(uid) || this.#lost.has(uid)) return;
      if (this.#claims.get(keyOf(claim))?.metadata.uid !== uid) return;
      try {
        const into = (await this.#bind(claim, uid)) ? this.#bound : this.#lost;
        into.add(uid);
      } catch (error) {
        log.error({ err: error, claim: keyOf(claim) }, "a claim got no disk; trying again");
        await sleep(bindRetryMs, signal);
      }
    }
  }

  /** Makes the disk and says so on the claim. False when the disk is lost: an empty one is never put in its place. */
  async #bind(claim: KubeObject, uid: string): Promise<boolean> {
    const { api, paths, isolation, nodeUid, log } = this.#options;
    const spec = recordOf(claim.spec);
    const wasBound = ["Bound", "Lost"].includes(textOf(recordOf(claim.status).phase) ?? "");
    const exists = await isFolder(paths.volume(uid));
    if (wasBound && !exists) {
      log.error(
        { claim: keyOf(claim), uid },
        "the disk of a bound claim is missing; it is not replaced by an empty one",
      );
      await this.#patchStatus(claim, { phase: "Lost" });
      return false;
    }
    if (!exists) {
      const record: ClaimRecord = {
        namespace: claim.metadata.namespace ?? "",
        name: claim.metadata.name,
        store: nodeUid,
        resourceVersion: claim.metadata.resourceVersion ?? "",
      };
      await this.#writeRecord(uid, record);
      await mkdir(paths.volume(uid), { mode: 0o700 });
    }
    if (wasBound) return true;
    // Also of one that is there: a node that was killed here may have made it and no more.
    const owner = ownerOutside(isolation);
    await chown(paths.volume(uid), owner.uid, owner.gid);
    const ref = refOf(claims, claim);
    try {
      if (textOf(spec.volumeName) === undefined)
        await api.patch(ref, "application/merge-patch+json", { metadata: { uid }, spec: { volumeName: `pvc-${uid}` } });
    } catch (error) {
      if (!isOfAnother(error)) throw error; // deleted meanwhile: onGone follows
    }
    const capacity = recordOf(recordOf(spec.resources).requests);
    await this.#patchStatus(claim, { phase: "Bound", accessModes: textsOf(spec.accessModes), capacity });
    return true;
  }

  async #patchStatus(claim: KubeObject, status: object): Promise<void> {
    const body = { metadata: { uid: claim.metadata.uid }, status };
    try {
      await this.#options.api.patch(refOf(claims, claim), "application/merge-patch+json", body, "status");
    } catch (error) {
      if (!isOfAnother(error)) throw error;
    }
  }

  #holdDisk(uid: string): HeldVolume {
    countUp(this.#holds, uid);
    let held = true;
    let leaving = false;
    return {
      path: this.#options.paths.volume(uid),
      uid,
      leave: () => {
        if (!held || leaving) return;
        leaving = true;
        countUp(this.#leaving, uid);
      },
      release: () => {
        if (!held) return;
        held = false;
        if (leaving && countDown(this.#leaving, uid) === 0) this.#announce();
        const isLast = countDown(this.#holds, uid) === 0;
        if (isLast && this.#doomed.delete(uid)) this.#queue(uid, () => this.#remove(uid));
      },
    };
  }

  /** Out of the way first, in one step, so that a half-removed disk is never met under its own name. */
  async #remove(uid: string): Promise<void> {
    const { paths } = this.#options;
    const trash = join(paths.trash, uid);
    await rm(trash, { recursive: true, force: true });
    await rename(paths.volume(uid), trash).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
    await rm(paths.claimRecord(uid), { force: true });
    await rm(trash, { recursive: true, force: true });
  }

  /**
   * Disks found at the start whose claims are not listed. Absence alone proves nothing: the store may be new, or an
   * older copy put back. It proves a deletion only where this same store (its Node object's uid) had the claim and has
   * moved on since (its resourceVersion), for it forgets an object only by deleting it. Every other disk is kept, and
   * marked: an older copy moves on as well, and must not pass for the store that had the claim at a later start.
   */
  async #sortOrphans(uids: ReadonlySet<string | undefined>, resourceVersion: string): Promise<void> {
    const { paths, nodeUid, log } = this.#options;
    const provenUpTo = this.#options.storeOpenedAt ?? Number.parseInt(resourceVersion, 10);
    await rm(paths.trash, { recursive: true, force: true });
    await mkdir(paths.trash, { recursive: true, mode: 0o700 });
    for (const entry of await readdir(paths.volumes, { withFileTypes: true })) {
      if (entry.name.endsWith(".claim.json.new")) {
        await rm(join(paths.volumes, entry.name), { force: true }); // never became a record
        continue;
      }
      const uid = entry.name.replace(/\.claim\.json$/, "");
      if (uids.has(uid)) continue;
      const record = await this.#readRecord(uid);
      const deleted =
        record?.store === nodeUid && record.kept !== true && Number.parseInt(record.resourceVersion, 10) <= provenUpTo;
      if (deleted && this.#holds.has(uid)) this.#doomed.add(uid);
      else if (deleted) await this.#remove(uid);
      else if (entry.isDirectory()) {
        log.warn({ path: paths.volume(uid), claim: record }, "a disk without a claim was found; it is kept");
        if (record !== undefined) await this.#writeRecord(uid, { ...record, kept: true });
      }
    }
  }

  /** In one step, so that a killed node leaves the old record or the new one. */
  async #writeRecord(uid: string, record: ClaimRecord): Promise<void> {
    const path = this.#options.paths.claimRecord(uid);
    await writeFile(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  async #readRecord(uid: string): Promise<ClaimRecord | undefined> {
    const text = await readFile(this.#options.paths.claimRecord(uid), "utf8").catch(() => undefined); // none: no proof
    if (text === undefined) return undefined;
    try {
      const read = recordOf(JSON.parse(text));
      const [namespace, name] = [textOf(read.namespace), textOf(read.name)];
      const [store, resourceVersion] = [textOf(read.store), textOf(read.resourceVersion)];
      if (namespace === undefined || name === undefined || store === undefined || resourceVersion === undefined)
        return undefined;
      return { namespace, name, store, resourceVersion, ...(read.kept === true ? { kept: true } : {}) };
    } catch {
      return undefined; // half-written: no proof either
    }
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

function countUp(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** What is left; at 0 the key goes. */
function countDown(counts: Map<string, number>, key: string): number {
  const left = (counts.get(key) ?? 1) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
  return left;
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

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error; // unreadable is not absent
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
