import type { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs, type WorkspaceId, watchedWorkspacesMax, watchListPageSize } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import type { Cluster } from "../../ports/cluster.ts";
import type { WorkspaceSummary } from "../../view.ts";
import { inventorySummaryOf } from "../summary.ts";

/** A whole list, and the version from which a watch misses nothing. */
export interface Listed {
  readonly version: string;
  readonly workspaces: Map<WorkspaceId, WorkspaceSummary>;
}

/** How long a page may take: a request that fails once may be tried again. */
const pageTimeoutMs = 2 * clusterRequestTimeoutMs;
/** A list that is so slow that its own pages expire is begun again this often. */
const listsMax = 3;

/** Lists the namespace, holding one page of objects at a time. Throws STREAM_CAPACITY for one that is too large to be watched. */
export async function listSummaries(
  cluster: Pick<Cluster, "listSandboxes">,
  within: Deadline,
  max = watchedWorkspacesMax,
): Promise<Listed> {
  for (let lists = 1; ; lists += 1) {
    try {
      return await listOnce(cluster, within, max);
    } catch (error) {
      if (!hasReason(error, "PAGE_TOKEN_EXPIRED")) throw error;
      if (lists === listsMax) throw unlisted("its pages expired while they were read", error);
    }
  }
}

async function listOnce(cluster: Pick<Cluster, "listSandboxes">, within: Deadline, max: number): Promise<Listed> {
  const workspaces = new Map<WorkspaceId, WorkspaceSummary>();
  let version: string | undefined;
  let continueToken: string | undefined;
  do {
    using one = within.within(pageTimeoutMs);
    const page = await cluster.listSandboxes({ limit: watchListPageSize, continueToken }, one);
    version ??= page.version;
    for (const sandbox of page.sandboxes) {
      const summary = inventorySummaryOf(sandbox);
      if (summary) workspaces.set(summary.id, summary);
    }
    if (workspaces.size > max) throw tooMany(max);
    continueToken = page.continueToken;
  } while (continueToken !== undefined);
  if (version === undefined) throw unlisted("the cluster did not say at which version it is", undefined);
  return { version, workspaces };
}

function unlisted(why: string, cause: unknown): HoldfastError {
  return new HoldfastError("CLUSTER_UNAVAILABLE", {
    message: `The workspaces could not be listed: ${why}. Nothing was changed. Watch again.`,
    cause,
  });
}

function tooMany(max: number): HoldfastError {
  return new HoldfastError("STREAM_CAPACITY", {
    message: `The namespace holds more than ${max} workspaces, which is all that one process watches. List them instead.`,
    metadata: { limit: String(max) },
  });
}
