import type { PodUid, SandboxUid } from "@holdfast/contract";
import type { DiskVerdict, Mode, PodReading, SandboxReading, Stamps } from "@holdfast/workspace";

export type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

/** A Sandbox as the fake keeps it. */
export interface StoredSandbox extends Mutable<Omit<SandboxReading, "stamps" | "uid">> {
  uid: SandboxUid;
  stamps: Mutable<Stamps>;
  pods: StoredPod[];
}

export interface StoredPod extends Mutable<PodReading> {
  uid: PodUid;
}

/** What a test says of a standing Sandbox; the rest is as a running workspace has it. */
export interface SandboxSeed {
  readonly mode?: Mode;
  readonly template?: string | undefined;
  readonly runtimeClassName?: string;
  readonly disk?: DiskVerdict;
  readonly deleting?: boolean;
  readonly stamps?: Partial<Stamps>;
  readonly shutdown?: SandboxReading["shutdown"];
}

export const usableDisk: DiskVerdict = { usable: true, root: "/workspace", entries: ["disk"] };

export const noStamps: Stamps = {
  holderEpoch: undefined,
  modeChangedAt: undefined,
  podTemplateHash: undefined,
  createdBy: undefined,
  writtenBy: undefined,
  volumeClaimUids: undefined,
};

/** A reading that later changes do not reach. */
export function readingOf(sandbox: StoredSandbox): SandboxReading {
  const { pods: _pods, ...reading } = sandbox;
  return { ...reading, stamps: { ...sandbox.stamps } };
}
