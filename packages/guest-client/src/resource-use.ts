import type { ResourceUse as TakenUse } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import type { ResourceUse } from "@holdfast/workspace";

/** What a guest says to use; undefined where it was not asked, or is older than the question. */
export function resourceUseOf(use: TakenUse | undefined): ResourceUse | undefined {
  if (use === undefined) return undefined;
  const { disk, memory } = use;
  return {
    disk: disk && {
      totalBytes: disk.totalBytes,
      usedBytes: disk.usedBytes,
      availableBytes: disk.availableBytes,
      inodes:
        disk.totalInodes === undefined || disk.usedInodes === undefined
          ? undefined
          : { total: disk.totalInodes, used: disk.usedInodes },
    },
    memory: memory && {
      usedBytes: memory.usedBytes,
      workingSetBytes: memory.workingSetBytes,
      limitBytes: memory.limitBytes,
    },
  };
}
