import type { CallRecord } from "../world/calls.ts";
import type { History } from "../world/history.ts";
import type { Effect, Program } from "../world/model-guests.ts";
import type { SuspendedSeen } from "../world/seen-states.ts";
import type { WriteLog } from "../world/write-log.ts";

/** What a sequence leaves to be judged. */
export interface Judged {
  readonly sandboxName: string;
  readonly history: History;
  readonly writes: WriteLog;
  readonly calls: readonly CallRecord[];
  readonly guests: { readonly effects: readonly Effect[]; readonly programs: readonly Program[] };
  readonly states: { readonly suspended: readonly SuspendedSeen[] };
  readonly lostClaims: number;
  /** How far the versions that were noted may lie behind those that stood. */
  readonly revisionSlack: number;
}
