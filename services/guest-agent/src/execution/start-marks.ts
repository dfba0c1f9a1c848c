import { type ExecutionId, isExecutionId } from "@holdfast/contract";

/** What is kept of an id that was started. */
export interface StartMark {
  readonly t: "started";
  readonly id: ExecutionId;
  /** Of the request. */
  readonly hash: string;
  /** Of the agent process. */
  readonly bootId: string;
  /** By the wall clock; undefined while it runs, as far as is known. */
  readonly endedAtMs?: number;
}

/** What is told of an id. */
export type Mark =
  | StartMark
  | { readonly t: "ended"; readonly id: ExecutionId; readonly endedAtMs: number }
  | { readonly t: "withdrawn"; readonly id: ExecutionId };

/** The lines of a mark: `s id hash boot`, `e id when`, `w id`. */
export function linesOf(mark: Mark): string[] {
  switch (mark.t) {
    case "withdrawn":
      return [`w ${mark.id}\n`];
    case "ended":
      return [`e ${mark.id} ${mark.endedAtMs}\n`];
    case "started": {
      const { id, hash, bootId, endedAtMs } = mark;
      const started = `s ${id} ${hash} ${bootId}\n`;
      return endedAtMs === undefined ? [started] : [started, `e ${id} ${endedAtMs}\n`];
    }
  }
}

const pattern =
  /^(?:s (?<started>\S+) (?<hash>\S+) (?<boot>\S+)|e (?<ended>\S+) (?<when>\d{1,16})|w (?<withdrawn>\S+))$/;

/**
 * What lines come to, those that ended first before those that ended later. A last line without its end was never written to the end, so
 * its command never ran; any other that says nothing, as a crash of the machine may leave, is passed over.
 */
export function readMarks(text: string): StartMark[] {
  const marks = new Map<string, StartMark>();
  const lines = text.split("\n");
  lines.pop();
  for (const line of lines) {
    const { started, hash, boot, ended, when, withdrawn } = pattern.exec(line)?.groups ?? {};
    if (started !== undefined && isExecutionId(started)) {
      marks.set(started, { t: "started", id: started, hash: hash ?? "", bootId: boot ?? "" });
    } else if (ended !== undefined) {
      const mark = marks.get(ended);
      if (mark !== undefined) marks.set(ended, { ...mark, endedAtMs: Number(when) });
    } else if (withdrawn !== undefined) marks.delete(withdrawn);
    else console.error(`the journal of executions has a line that says nothing: ${JSON.stringify(line.slice(0, 100))}`);
  }
  const endOf = ({ endedAtMs = Number.POSITIVE_INFINITY }: StartMark): number => endedAtMs;
  return [...marks.values()].sort((a, b) => (endOf(a) === endOf(b) ? 0 : endOf(a) - endOf(b)));
}
