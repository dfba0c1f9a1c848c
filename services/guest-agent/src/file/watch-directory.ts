import {
  type Change,
  ChangeKind,
  type WatchRequest,
  WatchResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { AgentStream } from "@holdfast/guest-link";
import { BatchSender } from "./batch-sender.ts";
import { fileErrorOf, refused } from "./file-errors.ts";
import { type Told, toldOf } from "./file-info.ts";
import { type InotifyEvent, inotifyBits } from "./inotify.ts";
import type { Libc } from "./libc.ts";
import { isShown, requireDirectory } from "./list-directory.ts";
import { type PinTop, type WatchedDirectory, WatchedTree } from "./watched-tree.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

type ChangeInit = Omit<Change, "$typeName" | "$unknown" | "rawName"> & { readonly rawName?: Buffer };

/**
 * Reports changes until the caller ends it, or the directory is gone. Events wait in the kernel's own bounded queue, and are read only
 * as fast as the caller takes them: what does not fit is reported by the kernel, and passed on (B66).
 */
export async function watchDirectory(
  tree: WorkspaceTree,
  libc: Libc | undefined,
  request: WatchRequest,
  stream: AgentStream,
): Promise<void> {
  const { path } = request;
  if (libc === undefined) {
    throw refused("GUEST_FEATURE_MISSING", path, "this guest's image has no addon for inotify. Nothing is watched");
  }
  using watch = new DirectoryWatch(libc, request, await findTop(tree, path), stream);
  try {
    await watch.run();
  } catch (error) {
    throw fileErrorOf(error, path);
  }
}

/** The top of a watch: found once through links, and from then on it must be the same directory under the same name. */
interface Top {
  readonly told: Told;
  readonly pin: PinTop;
}

async function findTop(tree: WorkspaceTree, path: string): Promise<Top> {
  using found = await requireDirectory(tree, path);
  const { dev, ino } = found.entry.stat;
  const pin: PinTop = async () => {
    const place = await tree.resolve(found.path, { follow: false });
    if (place.entry?.stat.ino === ino && place.entry.stat.dev === dev) {
      return { directory: place.entry.pinned, [Symbol.dispose]: () => place[Symbol.dispose]() };
    }
    place[Symbol.dispose]();
    throw isOver(path);
  };
  return { told: { path: found.path, rawName: undefined }, pin };
}

function isOver(path: string) {
  return refused("FILE_NOT_FOUND", path, "the watched directory was removed or moved: the watch is over");
}

class DirectoryWatch implements Disposable {
  readonly #libc: Libc;
  readonly #request: WatchRequest;
  readonly #top: Top;
  readonly #stream: AgentStream;
  readonly #changes: BatchSender<ChangeInit>;
  #watched: WatchedTree;

  constructor(libc: Libc, request: WatchRequest, top: Top, stream: AgentStream) {
    this.#libc = libc;
    this.#request = request;
    this.#top = top;
    this.#stream = stream;
    this.#changes = new BatchSender(stream, (changes) => stream.sendMessage(WatchResponseSchema, { changes }));
    this.#watched = this.#newTree();
  }

  async run(): Promise<void> {
    const { signal } = this.#stream.context;
    await this.#watched.arm(signal);
    this.#stream.sendMessage(WatchResponseSchema, { watching: this.#watched.size });
    for (;;) {
      signal.throwIfAborted();
      const events = this.#watched.inotify.read();
      if (events.length === 0) await this.#watched.inotify.readable(signal);
      for (const event of events) {
        if ((event.mask & inotifyBits.overflow) !== 0) {
          await this.#startAnew(signal);
          break; // What was read behind it is of the former instance, and is covered by the overflow.
        }
        await this.#handle(event, signal);
      }
      await this.#changes.flush();
      if (this.#stream.isBlocked) await this.#stream.drained();
    }
  }

  [Symbol.dispose](): void {
    this.#watched[Symbol.dispose]();
  }

  /** After lost events nothing that is known of the tree can be relied on. The caller is told once everything is watched again. */
  async #startAnew(signal: AbortSignal): Promise<void> {
    await this.#changes.flush();
    this.#watched[Symbol.dispose]();
    this.#watched = this.#newTree();
    await this.#watched.arm(signal);
    const overflow = "more changes came than the kernel keeps (fs.inotify.max_queued_events). List again.";
    this.#stream.sendMessage(WatchResponseSchema, { overflow });
  }

  #newTree(): WatchedTree {
    return new WatchedTree(this.#libc, this.#request, this.#top.pin, this.#top.told);
  }

  async #handle(event: InotifyEvent, signal: AbortSignal): Promise<void> {
    const { mask, name } = event;
    const directory = this.#watched.of(event.watch);
    if (directory === undefined) return; // Of a directory that was let go meanwhile.
    if (name.length === 0) {
      this.#handleSelf(directory, mask);
      return;
    }
    if (!isShown(event)) return;
    const kind = kindOf(mask);
    if (kind === undefined) return;
    await this.#report(kind, toldOf(directory.told, name));
    if ((mask & inotifyBits.isDirectory) === 0 || !this.#request.recursive) return;
    if (kind === ChangeKind.REMOVED) this.#watched.dropChild(directory, name);
    if (kind !== ChangeKind.CREATED) return;
    // What was made in it before its watch stood had no event, so it is found by listing. Some may be reported twice.
    const found = (told: Told): Promise<void> => this.#report(ChangeKind.CREATED, told);
    await this.#watched.addChild(directory, name, signal, found);
  }

  #handleSelf(directory: WatchedDirectory, mask: number): void {
    const gone = inotifyBits.deleteSelf | inotifyBits.moveSelf | inotifyBits.unmount | inotifyBits.ignored;
    if (directory.parent === undefined && (mask & gone) !== 0) {
      throw isOver(this.#request.path);
    }
    if ((mask & inotifyBits.ignored) !== 0) this.#watched.drop(directory);
  }

  #report(kind: ChangeKind, { path, rawName }: Told): Promise<void> {
    return this.#changes.add([{ kind, path, ...(rawName === undefined ? {} : { rawName }) }]);
  }
}

function kindOf(mask: number): ChangeKind | undefined {
  if ((mask & (inotifyBits.create | inotifyBits.movedTo)) !== 0) return ChangeKind.CREATED;
  if ((mask & (inotifyBits.delete | inotifyBits.movedFrom)) !== 0) return ChangeKind.REMOVED;
  if ((mask & (inotifyBits.modify | inotifyBits.attrib)) !== 0) return ChangeKind.MODIFIED;
  return undefined;
}
