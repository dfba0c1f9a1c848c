import { isWorkspaceId } from "@holdfast/contract";
import { UsageError } from "./failure.ts";

/** A file on this machine, in a workspace, or the standard stream ("-"). */
export type Location =
  | { readonly t: "local"; readonly path: string }
  | { readonly t: "workspace"; readonly workspaceId: string; readonly path: string }
  | { readonly t: "standard" };

/** Reads `ID:PATH`, `PATH` or `-`. A path of this machine that has a colon is written with a slash before it, as `./a:b`. */
export function locationOf(text: string): Location {
  if (text === "-") return { t: "standard" };
  const colon = text.indexOf(":");
  if (colon < 0 || text.slice(0, colon).includes("/")) return { t: "local", path: text };
  return { t: "workspace", ...remoteOf(text) };
}

/** Reads `ID` or `ID:PATH`; the path is the workspace's root when it is not given. */
export function remoteOf(text: string): { readonly workspaceId: string; readonly path: string } {
  const colon = text.indexOf(":");
  const workspaceId = colon < 0 ? text : text.slice(0, colon);
  if (!isWorkspaceId(workspaceId)) {
    throw new UsageError(
      `"${workspaceId}" is no workspace: 1 to 54 of a-z, 0-9 and '-', beginning and ending with a letter or digit`,
    );
  }
  return { workspaceId, path: (colon < 0 ? "" : text.slice(colon + 1)) || "." };
}
