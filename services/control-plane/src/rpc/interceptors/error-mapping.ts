import { type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { errorMessageMaxLength, errorValueMaxLength, isWorkspaceId, sandboxNameOf } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";

/** Which call an error belongs to. */
export interface CallSubject {
  /** The RPC's name, as "OpenWorkspace". */
  readonly operation: string;
  readonly requestId: string;
  /** As the caller sent it, valid or not; undefined on calls about none. */
  readonly workspaceId: string | undefined;
}

/** The subject of a request: by its `workspace_id`, or that of a message directly in it (`start`). */
export function workspaceIdOfRequest(schema: DescMessage, request: Message): string | undefined {
  const id = (request as { workspaceId?: unknown }).workspaceId;
  if (typeof id === "string") return id;
  for (const field of schema.fields) {
    if (field.fieldKind !== "message" || field.message.field.workspaceId === undefined) continue;
    if (!isFieldSet(request, field)) continue;
    return workspaceIdOfRequest(field.message, reflect(schema, request).get(field).message);
  }
  return undefined;
}

/**
 * The error as the caller gets it: what was thrown, with operation, workspace_id and sandbox, short enough for trailers.
 * Anything but a HoldfastError is a defect: INTERNAL_ERROR with the request id, and nothing of what was thrown.
 */
export function callerErrorOf(thrown: unknown, subject: CallSubject): HoldfastError {
  const error =
    thrown instanceof HoldfastError
      ? thrown
      : new HoldfastError("INTERNAL_ERROR", {
          message: `The service failed at ${subject.operation}; what became of it is not known. Its log has more under request ${subject.requestId}.`,
          metadata: { request_id: subject.requestId },
          cause: thrown,
        });
  const { workspaceId } = subject;
  const about: Record<string, string> = { operation: subject.operation };
  if (workspaceId !== undefined && workspaceId !== "") about.workspace_id = workspaceId;
  if (workspaceId !== undefined && isWorkspaceId(workspaceId)) about.sandbox = sandboxNameOf(workspaceId);
  const metadata = Object.entries({ ...error.metadata, ...about }).map(([key, value]) => [
    key,
    fit(value, errorValueMaxLength),
  ]);
  return new HoldfastError(error.reason, {
    message: fit(error.message, errorMessageMaxLength),
    metadata: Object.fromEntries(metadata),
    violations: error.violations,
    onAttach: error.onAttach,
    cause: error,
  });
}

/** No longer than `limit`, and well-formed: trailers are percent-encoded, which lone surrogates break. */
function fit(text: string, limit: number): string {
  const short = text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
  return short.toWellFormed();
}
