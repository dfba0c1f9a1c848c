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

/** A recording as its file: an entry on each line, so that a difference between two recordings can be read. */
export function recordingText({ header, cases }: Recording): string {
  const blocks = Object.entries(cases).map(([id, transcript]) => {
    const lines = transcript.map((entry) => `   ${JSON.stringify(entry)}`);
    return `  ${JSON.stringify(id)}: [${lines.length === 0 ? "" : `\n${lines.join(",\n")}\n  `}]`;
  });
  return `{\n "header": ${JSON.stringify(header)},\n "cases": {\n${blocks.join(",\n")}\n }\n}\n`;
}
