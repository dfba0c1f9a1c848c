import type { Deadline, Subscription } from "@holdfast/async";
import type { HolderEpoch, PodUid, SandboxUid, WorkspaceId } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";

/** What was last asked of a workspace. An absent mode reads as Running. */
export type Mode = "Running" | "Suspended";

/** The Sandbox of a workspace as one uncached read showed it. A write is composed from exactly one of these. */
export interface SandboxReading {
  readonly name: string;
  readonly uid: SandboxUid;
  readonly resourceVersion: string;
  readonly generation: number;
  /** The highest observedGeneration of any condition; 0 when there is none. The conditions' values are not believed. */
  readonly observedGeneration: number;
  readonly mode: Mode;
  /** Members that the object does not have, which whoever composes a patch must know. Undefined: it has both. */
  readonly lacks?: { readonly annotations: boolean; readonly mode: boolean };
  readonly deleting: boolean;
  readonly createdAt: Date;
  readonly stamps: Stamps;
  /** The template label on its pod template; undefined when it has none (not a workspace of this service). */
  readonly template: string | undefined;
  readonly runtimeClassName: string | undefined;
  /** The name that its Service is reached under; undefined until the cluster says one. */
  readonly serviceHost?: string | undefined;
  readonly disk: DiskVerdict;
  /** Its volumeClaimTemplates; only the cluster looks inside. */
  readonly claimTemplates?: unknown;
  /** Set when the object carries a shutdownTime: it may delete its disk by itself, which is reported. */
  readonly shutdown: { readonly time: string; readonly policy: string } | undefined;
}

/** What lists and watches tell of a Sandbox: all that a summary needs, and nothing that a write could be composed from. */
export type ListedSandbox = Pick<SandboxReading, "name" | "uid" | "mode" | "createdAt" | "stamps" | "template">;

/** Our annotations, as text. Absent ones are undefined. */
export interface Stamps {
  readonly holderEpoch: string | undefined;
  readonly modeChangedAt: string | undefined;
  readonly podTemplateHash: string | undefined;
  readonly createdBy: string | undefined;
  readonly writtenBy: string | undefined;
  /** `claim=uid`, comma-separated. */
  readonly volumeClaimUids: string | undefined;
}

/**
 * L10: whether the disk of a template or Sandbox can hold a workspace. `entries` and `claims` are names of its
 * volumeClaimTemplates; `claims` those at fault.
 */
export type DiskVerdict =
  | { readonly usable: true; readonly root: string; readonly entries: readonly string[] }
  | { readonly usable: false; readonly why: string; readonly claims: readonly string[] };

/** A SandboxTemplate, opaque but for what the checks need. */
export interface TemplateReading {
  readonly name: string;
  readonly disk: DiskVerdict;
  /** The hash of its pod template as it would be written, with what is laid over it (L32). */
  readonly revision: string;
  /** The pod template and claims to create from; only the cluster looks inside. */
  readonly blueprint: unknown;
}

/** A Sandbox as it would be with a template's current pod template (L31). Its claims stay its own. */
export interface RefreshedSandbox {
  readonly disk: DiskVerdict;
  readonly runtimeClassName: string | undefined;
  /** Claims that the template has and the Sandbox lacks, by name. */
  readonly extraClaims: readonly string[];
  /** Claims that the Sandbox has and the template lacks, by name. */
  readonly droppedClaims: readonly string[];
}

/** The disks of one Sandbox. A claim that may not be read (403) is in neither. */
export interface ClaimsReading {
  /** Claim name → uid, of those that stand and are its own. */
  readonly uids: Readonly<Record<string, string>>;
  /** Names of claims that are not there, not its own, or on their way out: the next pod would get an empty disk. */
  readonly lost: readonly string[];
}

/** A pod of one Sandbox: owned by it (by owner uid), or else a stray on its disk. */
export interface PodReading {
  readonly name: string;
  /**
   * It has this Sandbox's name and uses its claims, and is not owned by it, as when somebody took its ownerReferences off. It is nobody's to
   * bind or to delete; while it lives the disk is in use.
   */
  readonly isStray?: boolean;
  readonly uid: PodUid;
  readonly resourceVersion: string;
  /** Undefined: not yet. */
  readonly ip: string | undefined;
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  readonly ready: boolean;
  readonly deleting: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly node: string | undefined;
  readonly image: string;
  readonly restartCount: number;
  /** In words, for people. */
  readonly lastTermination: string | undefined;
  /** The same. */
  readonly termination: ContainerTermination | undefined;
  /** Why it does not start, as "unschedulable: …", "image pull: …", "crash loop: …", "out of memory". */
  readonly problem: string | undefined;
}

/** How the agent's container last ended; what the cluster does not say is undefined. */
export interface ContainerTermination {
  readonly reason: string | undefined;
  readonly exitCode: number | undefined;
  readonly finishedAt: Date | undefined;
}

/** A write's three endings. Unknown is never read as refused: a late request can still land. */
export type WriteEnding<Value> =
  | { readonly t: "applied"; readonly value: Value }
  | { readonly t: "refused"; readonly why: Refusal; readonly error: HoldfastError }
  | { readonly t: "unknown"; readonly cause: unknown };

/**
 * `condition`: a tested value had moved, or the patch is wrong: re-read to tell (L24). `absent`: the object is not there.
 * `other`: the server's words are in the error.
 */
export type Refusal = "condition" | "absent" | "other";

/** Creating has one more ending: something of that name stands. */
export type CreateEnding = WriteEnding<SandboxReading> | { readonly t: "exists" };

export interface CreateWish {
  readonly id: WorkspaceId;
  readonly template: TemplateReading;
  /** Random per Open call, the same on its repeats. */
  readonly createdBy: string;
  /** Random per call. */
  readonly writtenBy: string;
  /** Stored with the object; undefined: no annotation. */
  readonly epoch?: HolderEpoch | undefined;
}

/**
 * A conditional patch of the mode, composed from `reading`: applies only if uid, stamp, written-by and the epoch's text are still those
 * (where one of the last three is absent, if the resourceVersion is), and a wake only if the mode is still Suspended. Where the mode
 * does not move (a suspend sent again, a Running that defeats an unresolved suspend, a take-over) no stamp is written.
 */
export interface ModeWish {
  readonly reading: SandboxReading;
  readonly mode: Mode;
  /** Random per call: read back, it proves that this write landed. */
  readonly writtenBy: string;
  /** Stored with the mode; undefined: the annotation is left as it is. */
  readonly epoch?: HolderEpoch | undefined;
  /** Written with a wake: this template's pod template, whole, and its hash (L31). */
  readonly refresh?: TemplateReading | undefined;
  /** Written with a suspend when known, and with a replaced disk that was accepted. */
  readonly volumeClaimUids: Readonly<Record<string, string>> | undefined;
  /** For the mode-changed stamp: max(now, stamp read + 1 ms). */
  readonly now: number;
}

/** Exactly one pod, as it was read. */
export interface DeletePodWish {
  readonly name: string;
  readonly uid: PodUid;
  readonly resourceVersion: string;
}

export interface DeleteWish {
  readonly name: string;
  readonly uid: SandboxUid;
  readonly resourceVersion: string;
}

/** What is left of a deleted workspace. */
export interface Remains {
  readonly sandbox: boolean;
  readonly pods: readonly string[];
  readonly claims: readonly string[];
}

/**
 * The cluster, as the domain needs it. Reads are uncached, and retried on 429, 5xx and time-outs within the deadline, honouring
 * Retry-After; a read that fails throws CLUSTER_UNAVAILABLE or CLUSTER_FORBIDDEN, and a cancelled one the caller's own reason.
 * Writes are sent once and say how they ended instead of throwing; only a 429, which was turned away unread, is sent again.
 */
export interface Cluster {
  /** Throws WORKSPACE_NOT_FOUND naming the template when it does not exist. */
  readTemplate(name: string, within: Deadline): Promise<TemplateReading>;
  readSandbox(name: string, within: Deadline): Promise<SandboxReading | undefined>;
  readPods(sandbox: Pick<SandboxReading, "name" | "uid">, within: Deadline): Promise<readonly PodReading[]>;
  /** This Sandbox's claims, each read by its name. */
  readClaims(sandbox: SandboxReading, within: Deadline): Promise<ClaimsReading>;
  /** What is left of the Sandbox with this uid: the object, its pods, and the claims of the entries named. */
  readRemains(gone: DeleteWish & { readonly entries: readonly string[] }, within: Deadline): Promise<Remains>;
  createSandbox(wish: CreateWish, within: Deadline): Promise<CreateEnding>;
  setMode(wish: ModeWish, within: Deadline): Promise<WriteEnding<SandboxReading>>;
  /** Foreground, with uid and resourceVersion as preconditions. Sent only where a caller asked for it by name (L4). */
  deleteSandbox(wish: DeleteWish, within: Deadline): Promise<WriteEnding<undefined>>;
  /** The Sandbox as it would be with the template's pod template. Sends nothing. */
  refreshed(sandbox: SandboxReading, template: TemplateReading): RefreshedSandbox;
  /** With uid and resourceVersion as preconditions: a pod that changed since it was read is left alone (`condition`). */
  deletePod(wish: DeletePodWish, within: Deadline): Promise<WriteEnding<undefined>>;
  /** Wakes at any change of this Sandbox or its pods. It only wakes: read again. */
  changes(sandboxName: string): Subscription;
  /** Hears of every Sandbox and its pods from now on, over the same watch; dispose of it to hear no more. The listener must not throw. */
  hear(listener: (news: ClusterNews) => void): Disposable;
  listSandboxes(page: ListWish, within: Deadline): Promise<ListPage>;
  /**
   * One watch of the namespace's Sandboxes, until its connection ends or the signal aborts. Never rejects; it is for whoever calls to
   * go on from the last version heard, and to list again where that must be.
   */
  watchSandboxes(wish: SandboxWatchWish, signal: AbortSignal): Promise<SandboxWatchEnd>;
  listTemplates(page: ListWish, within: Deadline): Promise<TemplatePage>;
}

/**
 * What a watch said of one workspace, by its Sandbox's name. It may be late: it is a reason to decide, and who decides reads first (L37).
 * `changed`: something that could not be read. `missed`: anything may have happened, to anybody.
 */
export type ClusterNews =
  | {
      readonly t: "sandbox";
      readonly name: string;
      readonly uid: SandboxUid;
      readonly mode: Mode;
      readonly deleting: boolean;
      /** As it is stored. */
      readonly holderEpoch: string | undefined;
      readonly happened: "added" | "modified" | "gone";
    }
  | { readonly t: "pod"; readonly name: string; readonly pod: PodNews; readonly gone: boolean }
  | { readonly t: "changed"; readonly name: string }
  | { readonly t: "missed" };

/** A pod as the watch said it; `waits`: its node prepares the container, which does not run yet. */
export type PodNews = Pick<
  PodReading,
  "uid" | "node" | "phase" | "ready" | "deleting" | "restartCount" | "problem" | "ip"
> & { readonly waits: boolean };

export interface ListWish {
  readonly limit: number;
  /** The cluster's continue token; PAGE_TOKEN_EXPIRED is thrown for one that it no longer honours. */
  readonly continueToken: string | undefined;
}

export interface ListPage {
  readonly sandboxes: readonly ListedSandbox[];
  readonly continueToken: string | undefined;
  /** The collection's: a watch from here misses nothing. */
  readonly version: string | undefined;
}

export interface SandboxWatchWish {
  /** What came after this version is heard. */
  readonly from: string;
  /** The cluster has taken the watch. */
  readonly onOpen: () => void;
  readonly onNews: (news: SandboxNews) => void;
}

/** What a watch says, in the cluster's order. `version`: all up to there has been said. */
export type SandboxNews =
  | { readonly t: "stands"; readonly sandbox: ListedSandbox; readonly isNew: boolean; readonly version: string }
  /** Deleted, or not to be read any more. */
  | { readonly t: "gone"; readonly name: string; readonly last: ListedSandbox | undefined; readonly version: string }
  /** Something that is no workspace. */
  | { readonly t: "nothing"; readonly version: string }
  | { readonly t: "bookmark"; readonly version: string };

export interface SandboxWatchEnd {
  readonly why: string;
  readonly isFault: boolean;
  /** The cluster no longer has what came after the version (410). */
  readonly isExpired: boolean;
  /** Going on from the last version may miss something: list again. */
  readonly mustList: boolean;
  readonly retryAfterMs: number | undefined;
}

export interface TemplatePage {
  readonly templates: readonly ListedTemplate[];
  readonly continueToken: string | undefined;
}

/** A SandboxTemplate in a list. One that cannot be read, or named by a workspace, has a disk that is not usable, with the reason. */
export interface ListedTemplate {
  readonly name: string;
  /** Of its first container. */
  readonly image: string | undefined;
  readonly disk: DiskVerdict;
}
