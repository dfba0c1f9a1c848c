import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DiskUseSchema } from "@holdfast/api/holdfast/guest/v1/agent_pb";

/** What the kernel says of a file system, in blocks of `frsize`. */
export interface FileSystemFacts {
  readonly frsize: bigint;
  readonly blocks: bigint;
  readonly bfree: bigint;
  readonly bavail: bigint;
  readonly files: bigint;
  readonly ffree: bigint;
}

/** How full a file system is; undefined where it does not say how large it is, as one without blocks or without a size of them. */
export function diskUseOf(facts: FileSystemFacts): MessageInitShape<typeof DiskUseSchema> | undefined {
  const { frsize, blocks, bfree, bavail, files, ffree } = facts;
  if (frsize <= 0n || blocks <= 0n || bfree < 0n || bfree > blocks) return undefined;
  // Some count inodes without a bound, and say 0, or more free ones than there are.
  const hasInodes = files > 0n && ffree >= 0n && ffree <= files;
  return {
    totalBytes: blocks * frsize,
    usedBytes: (blocks - bfree) * frsize,
    // Where even the reserve is in use it is below zero, which is a number without a sign to some.
    availableBytes: (bavail < 0n || bavail > blocks ? 0n : bavail) * frsize,
    ...(hasInodes && { totalInodes: files, usedInodes: files - ffree }),
  };
}
