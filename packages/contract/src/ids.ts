import { sandboxNamePrefix } from "./object-names.ts";

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** 1 to 54 characters of a-z, 0-9 and '-', beginning and ending with a letter or digit. */
export type WorkspaceId = Branded<"WorkspaceId">;
/** The uid of a Sandbox object. */
export type SandboxUid = Branded<"SandboxUid">;
/** The uid of a pod; also its guest's bind token. */
export type PodUid = Branded<"PodUid">;
/** Random per guest agent process. */
export type BootId = Branded<"BootId">;
/** Chosen by the caller or minted: 1 to 64 of letters, digits, '.', '_' and '-'. */
export type ExecutionId = Branded<"ExecutionId">;
/** Chosen by the caller or minted, as an execution's id. */
export type SessionId = Branded<"SessionId">;
/** Minted by the guest for one reader of a session. */
export type AttachmentId = Branded<"AttachmentId">;

declare const epochBrand: unique symbol;
/** A holder epoch: a caller's fencing number, 0 to 2^53 - 1. */
export type HolderEpoch = number & { readonly [epochBrand]: true };

/** Request metadata that gives each call of a client its epoch. */
export const holderEpochHeader = "holdfast-epoch";

/** Takes a number that has been checked. */
export function holderEpochFrom(value: number): HolderEpoch {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is no holder epoch`);
  return value as HolderEpoch;
}

export const workspaceIdPattern = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
export const workspaceIdMaxLength = 54;
export const executionIdPattern = /^[A-Za-z0-9._-]{1,64}$/;
export const sessionIdPattern = executionIdPattern;

/** True for a text that may name a workspace. */
export function isWorkspaceId(text: string): text is WorkspaceId {
  return text.length <= workspaceIdMaxLength && workspaceIdPattern.test(text);
}

/** True for a text that may name an execution. */
export function isExecutionId(text: string): text is ExecutionId {
  return executionIdPattern.test(text);
}

/** True for a text that may name a session. */
export function isSessionId(text: string): text is SessionId {
  return sessionIdPattern.test(text);
}

/** Takes an attachment's id as the guest, or a caller that has it from there, sent it. */
export const attachmentIdOf = (text: string): AttachmentId => text as AttachmentId;
/** Takes a uid as it was read from the cluster. */
export const sandboxUidOf = (text: string): SandboxUid => text as SandboxUid;
/** Takes a uid as it was read from the cluster. */
export const podUidOf = (text: string): PodUid => text as PodUid;
/** Takes a boot id as the guest sent it. */
export const bootIdOf = (text: string): BootId => text as BootId;

/** The name of the Sandbox of a workspace. */
export function sandboxNameOf(id: WorkspaceId): string {
  return `${sandboxNamePrefix}${id}`;
}

/** The workspace of a Sandbox of this name; undefined when the name is not a workspace's. */
export function workspaceIdOf(sandboxName: string): WorkspaceId | undefined {
  if (!sandboxName.startsWith(sandboxNamePrefix)) return undefined;
  const id = sandboxName.slice(sandboxNamePrefix.length);
  return isWorkspaceId(id) ? id : undefined;
}
