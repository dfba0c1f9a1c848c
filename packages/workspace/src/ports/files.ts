import type { Deadline } from "@holdfast/async";

/** What kind of file. */
export type FileType = "regular" | "directory" | "symlink" | "fifo" | "socket" | "device" | "other";

/** One file as it stands. */
export interface FileInfo {
  /** Relative to the workspace's root, without a leading "/"; "" is the root. */
  readonly path: string;
  /** The last component's bytes, only when they are not UTF-8. */
  readonly rawName: Uint8Array | undefined;
  readonly type: FileType;
  readonly sizeBytes: number;
  /** Permission bits. */
  readonly mode: number;
  readonly modifiedAtMs: number;
  /** Only of regular files: changes whenever the content or the file is replaced. */
  readonly etag: string | undefined;
  readonly linkTarget: string | undefined;
}

export interface ReadWish {
  readonly path: string;
  readonly offset: number;
  /** Undefined: to the end. What lies past the end is cut off. */
  readonly lengthBytes: number | undefined;
}

export type ReadEvent =
  | { readonly t: "opened"; readonly file: FileInfo }
  | { readonly t: "chunk"; readonly offset: number; readonly data: Uint8Array };

export interface WriteWish {
  readonly path: string;
  /** Undefined: that of the file that is replaced, else 0644. */
  readonly mode: number | undefined;
  readonly ifAbsent: boolean;
  readonly ifUnchanged: string | undefined;
  readonly makeParents: boolean;
  /** When set, another count of bytes fails the write. */
  readonly sizeBytes: number | undefined;
}

export interface WalkWish {
  readonly path: string;
  /** "" matches all. */
  readonly glob: string;
  readonly maxDepth: number | undefined;
  readonly maxEntries: number | undefined;
  readonly maxVisited: number;
  readonly hidden: boolean;
}

export type WatchEvent =
  | { readonly t: "watching"; readonly directories: number }
  | {
      readonly t: "change";
      readonly kind: "created" | "modified" | "removed";
      readonly path: string;
      readonly rawName: Uint8Array | undefined;
    }
  | { readonly t: "overflow"; readonly cause: string };

/**
 * Files of one guest, all below the workspace's root. Failures as those of `Guest`: GuestNotReached proves that nothing was sent,
 * GuestLost leaves open what became of a change, a HoldfastError is an answer of the guest. Aborting a signal ends the call; a write
 * that is aborted or whose content throws leaves the old file whole.
 */
export interface GuestFiles {
  /** One `opened`, then chunks in order. It ends normally only when every byte was delivered. */
  read(wish: ReadWish, signal: AbortSignal): AsyncIterable<ReadEvent>;
  /** Resolves once the content is durable under its name. Pulls `content` only as fast as the guest takes it. */
  write(wish: WriteWish, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<FileInfo>;
  stat(path: string, within: Deadline): Promise<FileInfo>;
  /** Batches in the order of the file system. */
  list(path: string, signal: AbortSignal): AsyncIterable<readonly FileInfo[]>;
  walk(wish: WalkWish, signal: AbortSignal): AsyncIterable<readonly FileInfo[]>;
  makeDirectory(
    wish: { readonly path: string; readonly makeParents: boolean; readonly mode: number | undefined },
    within: Deadline,
  ): Promise<FileInfo>;
  remove(wish: { readonly path: string; readonly recursive: boolean }, signal: AbortSignal): Promise<void>;
  move(
    wish: { readonly from: string; readonly to: string; readonly replace: boolean },
    within: Deadline,
  ): Promise<FileInfo>;
  watch(wish: { readonly path: string; readonly recursive: boolean }, signal: AbortSignal): AsyncIterable<WatchEvent>;
}
