import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Transcript } from "../suite/transcript.ts";

/** What a run against a real cluster saw. */
export interface Recording {
  readonly header: RecordingHeader;
  readonly cases: Readonly<Record<string, Transcript>>;
}

export interface RecordingHeader {
  readonly kubernetes: string;
  readonly sandboxController: string;
  readonly recordedAt: string;
  readonly flags: readonly string[];
}

export const recordingPath = join(import.meta.dirname, "kube-1.36.3_agent-sandbox-0.5.6.json");

export function readRecording(path = recordingPath): Recording {
  return JSON.parse(readFileSync(path, "utf8"));
}
