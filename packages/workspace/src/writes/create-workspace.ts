import type { Deadline } from "@holdfast/async";
import type { HolderEpoch } from "@holdfast/contract";
import { type HoldfastError, hasReason } from "@holdfast/errors";
import type { SandboxReading, TemplateReading } from "../ports/cluster.ts";
import { writeUnresolved } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { pauseBeforeRetry, writeDeadline } from "../waiting.ts";

export interface CreateMarks {
  /** Stored with the object; undefined: none. */
  readonly epoch: HolderEpoch | undefined;
  /** Random per Open call: only it, read back, means that this call created the workspace. */
  readonly createdBy: string;
  readonly writtenBy: string;
}

/** `created`: by an answer, or by our mark read back. `exists`: somebody else's stands. */
export type CreateOutcome =
  | { readonly t: "created"; readonly sandbox: SandboxReading; readonly proof: "answer" | "read_back" }
  | { readonly t: "exists"; readonly sandbox: SandboxReading };

/** The POST ended unresolved: it may still land. (L14) */
export class CreateUnresolved extends Error {
  readonly error: HoldfastError;
  constructor(error: HoldfastError, cause: unknown) {
    super(error.message, { cause });
    this.name = "CreateUnresolved";
    this.error = error;
  }
}

/** POSTs the workspace. After an unknown ending it looks what stands, and repeats the POST where nothing does (L14). */
export async function createWorkspace(
  ws: Handle,
  template: TemplateReading,
  marks: CreateMarks,
  within: Deadline,
): Promise<CreateOutcome> {
  let unanswered: unknown;
  for (let attempt = 0; ; attempt += 1) {
    const ending = await post(ws, template, marks);
    if (ending.t === "applied") return { t: "created", sandbox: ending.value, proof: "answer" };
    if (ending.t === "refused" && unanswered === undefined) throw ending.error;
    if (ending.t === "refused") throw unresolved(ws, marks, ending.error);
    if (ending.t === "unknown") unanswered = ending.cause ?? "no answer";
    try {
      const sandbox = await ws.deps.cluster.readSandbox(ws.name, within);
      const isOurs = sandbox?.stamps.createdBy === marks.createdBy;
      if (sandbox) return isOurs ? { t: "created", sandbox, proof: "read_back" } : { t: "exists", sandbox };
      await pauseBeforeRetry(ws.deps, attempt, within);
    } catch (error) {
      if (unanswered === undefined) throw error;
      throw unresolved(ws, marks, error);
    }
  }
}

async function post(ws: Handle, template: TemplateReading, marks: CreateMarks) {
  using time = writeDeadline(ws.deps);
  return await ws.deps.cluster.createSandbox({ id: ws.id, template, ...marks }, time);
}

function unresolved(ws: Handle, marks: CreateMarks, cause: unknown): CreateUnresolved {
  const why = hasReason(cause, "CLUSTER_UNAVAILABLE") ? "could not be read" : "did not answer in time";
  const message = `It is not known whether workspace ${ws.id} was created: the cluster ${why}. Open it again: what stands by then is adopted.`;
  return new CreateUnresolved(writeUnresolved(message, { created_by: marks.createdBy }, cause), cause);
}
