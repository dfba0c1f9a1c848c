import { annotations, latestStampMs, stampTimeMs } from "@holdfast/contract";
import type { ModeWish, SandboxReading } from "@holdfast/workspace";
import { add, type PatchOperation, pointer, test } from "./json-patch.ts";
import { writtenPodTemplate } from "./refresh.ts";

const uidPath = pointer("metadata", "uid");
const resourceVersionPath = pointer("metadata", "resourceVersion");
const annotationsPath = pointer("metadata", "annotations");
const podTemplatePath = pointer("spec", "podTemplate");
const modePath = pointer("spec", "operatingMode");

/**
 * The one JSON Patch of a workspace's mode, composed from one reading: tests first, then `add`s. It writes our mark always, the
 * mode and its stamp only when the mode changes.
 */
export function composeModePatch(wish: ModeWish, runtimeClassName?: string): readonly PatchOperation[] {
  const { reading, refresh } = wish;
  const changes = reading.mode !== wish.mode;
  // Only a wake refreshes: the pod template of one that runs says what runs (L31).
  if (refresh && !(changes && wish.mode === "Running")) throw new TypeError("a refresh is part of a wake");
  const written: Record<string, string> = { [annotations.writtenBy]: wish.writtenBy };
  if (wish.epoch !== undefined) written[annotations.holderEpoch] = String(wish.epoch);
  if (changes) written[annotations.modeChangedAt] = nextModeStamp(reading.stamps.modeChangedAt, wish.now);
  if (wish.volumeClaimUids !== undefined) {
    const uids = claimUidsText(wish.volumeClaimUids);
    if (uids !== "") written[annotations.volumeClaimUids] = uids;
  }
  if (refresh) written[annotations.podTemplateHash] = refresh.revision;
  return [
    ...conditionsOf(reading, changes && wish.mode === "Suspended"),
    ...annotate(reading, written),
    ...(refresh ? [add(podTemplatePath, writtenPodTemplate(refresh, runtimeClassName))] : []),
    ...(changes ? [add(modePath, wish.mode)] : []),
  ];
}

/** The stamp of a change of mode: later than the one read, even where that one lies in the future. */
export function nextModeStamp(read: string | undefined, now: number): string {
  const last = read === undefined ? undefined : stampTimeMs(read);
  const next = last === undefined ? now : Math.max(now, last + 1);
  return new Date(next <= latestStampMs ? next : now).toISOString();
}

/** Claim name = uid, sorted by name. */
export function claimUidsText(uids: Readonly<Record<string, string>>): string {
  return Object.entries(uids)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([claim, uid]) => `${claim}=${uid}`)
    .join(",");
}

/** What must still be as it was read. What is absent is covered by the resourceVersion: a `test` for null is not the same everywhere. */
function conditionsOf(reading: SandboxReading, isSuspend: boolean): readonly PatchOperation[] {
  const { writtenBy, modeChangedAt, holderEpoch } = reading.stamps;
  const tests = [test(uidPath, reading.uid)];
  if (writtenBy !== undefined) tests.push(test(annotationPath(annotations.writtenBy), writtenBy));
  if (modeChangedAt !== undefined) tests.push(test(annotationPath(annotations.modeChangedAt), modeChangedAt));
  // Another holder may store an epoch and touch nothing else.
  if (holderEpoch !== undefined) tests.push(test(annotationPath(annotations.holderEpoch), holderEpoch));
  const isPartlyAbsent = writtenBy === undefined || modeChangedAt === undefined || holderEpoch === undefined;
  if (isPartlyAbsent || reading.lacks?.mode) {
    tests.push(test(resourceVersionPath, reading.resourceVersion));
  }
  // A suspend of a Running workspace may find it suspended already. Whatever else this patch says holds for one mode only.
  if (!isSuspend && !reading.lacks?.mode) tests.push(test(modePath, reading.mode));
  return tests;
}

function annotate(reading: SandboxReading, written: Readonly<Record<string, string>>): readonly PatchOperation[] {
  if (reading.lacks?.annotations) return [add(annotationsPath, written)];
  return Object.entries(written).map(([key, value]) => add(annotationPath(key), value));
}

function annotationPath(key: string): string {
  return pointer("metadata", "annotations", key);
}
