import { HoldfastError } from "@holdfast/errors";
import type { FileInfo, GuestFiles, ReadEvent, WatchEvent, WriteWish } from "@holdfast/workspace";

interface FakeFile {
  readonly content: Buffer | undefined;
  readonly mode: number;
  readonly version: number;
}

/** Files of one guest in memory: plain files and directories, no links. Replace a method to make the guest misbehave. */
export class FakeFiles implements GuestFiles {
  readonly #files = new Map<string, FakeFile>([["", { content: undefined, mode: 0o755, version: 0 }]]);
  readonly #watchers = new Set<(event: WatchEvent) => void>();
  #version = 0;

  async *read(wish: Parameters<GuestFiles["read"]>[0], signal: AbortSignal): AsyncGenerator<ReadEvent> {
    signal.throwIfAborted();
    const { content } = this.#require(wish.path);
    if (content === undefined) throw refused("NOT_REGULAR_FILE", wish.path);
    if (wish.offset > content.length) throw refused("OFFSET_OUT_OF_RANGE", wish.path);
    yield { t: "opened", file: this.#info(wish.path) };
    const data = content.subarray(wish.offset, wish.offset + (wish.lengthBytes ?? content.length));
    if (data.length > 0) yield { t: "chunk", offset: wish.offset, data };
  }

  async write(wish: WriteWish, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<FileInfo> {
    const parts: Uint8Array[] = [];
    for await (const part of content) {
      signal.throwIfAborted();
      parts.push(part);
    }
    const all = Buffer.concat(parts);
    const old = this.#files.get(keyOf(wish.path));
    if (old && wish.ifAbsent) throw refused("FILE_EXISTS", wish.path);
    if (wish.ifUnchanged !== undefined && wish.ifUnchanged !== String(old?.version)) {
      throw refused("FILE_CHANGED", wish.path);
    }
    if (wish.sizeBytes !== undefined && wish.sizeBytes !== all.length) throw refused("INVALID_REQUEST", wish.path);
    this.#makeParents(wish.path, wish.makeParents);
    this.#put(wish.path, { content: all, mode: wish.mode ?? old?.mode ?? 0o644 });
    return this.#info(wish.path);
  }

  async stat(path: string): Promise<FileInfo> {
    this.#require(path);
    return this.#info(path);
  }

  async *list(path: string, signal: AbortSignal): AsyncGenerator<readonly FileInfo[]> {
    signal.throwIfAborted();
    if (this.#require(path).content !== undefined) throw refused("NOT_DIRECTORY", path);
    yield this.#below(path).filter((file) => parentOf(file.path) === keyOf(path));
  }

  async *walk(wish: Parameters<GuestFiles["walk"]>[0], signal: AbortSignal): AsyncGenerator<readonly FileInfo[]> {
    signal.throwIfAborted();
    this.#require(wish.path);
    const files = this.#below(wish.path);
    if (files.length > wish.maxVisited) throw refused("WALK_LIMIT", wish.path);
    yield files.slice(0, wish.maxEntries);
  }

  async makeDirectory(wish: Parameters<GuestFiles["makeDirectory"]>[0]): Promise<FileInfo> {
    if (this.#files.has(keyOf(wish.path)) && !wish.makeParents) throw refused("FILE_EXISTS", wish.path);
    this.#makeParents(wish.path, wish.makeParents);
    this.#put(wish.path, { content: undefined, mode: wish.mode ?? 0o755 });
    return this.#info(wish.path);
  }

  async remove(wish: { readonly path: string; readonly recursive: boolean }, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#require(wish.path);
    const below = this.#below(wish.path);
    if (below.length > 0 && !wish.recursive) throw refused("DIRECTORY_NOT_EMPTY", wish.path);
    for (const path of [keyOf(wish.path), ...below.map((file) => file.path)]) {
      this.#files.delete(path);
      this.#tell({ t: "change", kind: "removed", path, rawName: undefined });
    }
  }

  async move(wish: { readonly from: string; readonly to: string; readonly replace: boolean }): Promise<FileInfo> {
    this.#require(wish.from);
    if (this.#files.has(keyOf(wish.to)) && !wish.replace) throw refused("FILE_EXISTS", wish.to);
    const from = keyOf(wish.from);
    for (const [path, file] of [...this.#files]) {
      if (path !== from && !path.startsWith(`${from}/`)) continue;
      this.#files.delete(path);
      this.#put(`${keyOf(wish.to)}${path.slice(from.length)}`, file);
    }
    return this.#info(wish.to);
  }

  async *watch(wish: { readonly path: string; readonly recursive: boolean }, signal: AbortSignal) {
    signal.throwIfAborted();
    this.#require(wish.path);
    const waiting: WatchEvent[] = [{ t: "watching", directories: 1 }];
    let wake = (): void => undefined;
    const watcher = (event: WatchEvent): void => {
      waiting.push(event);
      wake();
    };
    this.#watchers.add(watcher);
    signal.addEventListener("abort", () => wake(), { once: true });
    try {
      for (;;) {
        signal.throwIfAborted();
        const event = waiting.shift();
        if (event) yield event;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      this.#watchers.delete(watcher);
    }
  }

  /** Says to every watch that changes were lost. */
  overflow(cause: string): void {
    this.#tell({ t: "overflow", cause });
  }

  #require(path: string): FakeFile {
    const file = this.#files.get(keyOf(path));
    if (file === undefined) throw refused("FILE_NOT_FOUND", path);
    return file;
  }

  #makeParents(path: string, wished: boolean): void {
    const parent = parentOf(keyOf(path));
    if (this.#files.has(parent)) return;
    if (!wished) throw refused("FILE_NOT_FOUND", path);
    this.#makeParents(parent, true);
    this.#put(parent, { content: undefined, mode: 0o755 });
  }

  #put(path: string, file: { readonly content: Buffer | undefined; readonly mode: number }): void {
    const key = keyOf(path);
    const kind = this.#files.has(key) ? "modified" : "created";
    this.#version += 1;
    this.#files.set(key, { content: file.content, mode: file.mode, version: this.#version });
    this.#tell({ t: "change", kind, path: key, rawName: undefined });
  }

  #below(path: string): FileInfo[] {
    const prefix = keyOf(path) === "" ? "" : `${keyOf(path)}/`;
    return [...this.#files.keys()].filter((key) => key !== "" && key.startsWith(prefix)).map((key) => this.#info(key));
  }

  #info(path: string): FileInfo {
    const { content, mode, version } = this.#require(path);
    return {
      path: keyOf(path),
      rawName: undefined,
      type: content === undefined ? "directory" : "regular",
      sizeBytes: content?.length ?? 0,
      mode,
      modifiedAtMs: version,
      etag: content === undefined ? undefined : String(version),
      linkTarget: undefined,
    };
  }

  #tell(event: WatchEvent): void {
    for (const watcher of this.#watchers) watcher(event);
  }
}

/** The files of whatever guest is reached at the time of each call. */
export function filesReachedBy(reach: (changes: boolean) => GuestFiles): GuestFiles {
  return {
    async *read(wish, signal) {
      yield* reach(false).read(wish, signal);
    },
    write: async (wish, content, signal) => await reach(true).write(wish, content, signal),
    stat: async (path, within) => await reach(false).stat(path, within),
    async *list(path, signal) {
      yield* reach(false).list(path, signal);
    },
    async *walk(wish, signal) {
      yield* reach(false).walk(wish, signal);
    },
    makeDirectory: async (wish, within) => await reach(true).makeDirectory(wish, within),
    remove: async (wish, signal) => await reach(true).remove(wish, signal),
    move: async (wish, within) => await reach(true).move(wish, within),
    async *watch(wish, signal) {
      yield* reach(false).watch(wish, signal);
    },
  };
}

function keyOf(path: string): string {
  return path
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .join("/");
}

function parentOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
}

function refused(reason: ConstructorParameters<typeof HoldfastError>[0], path: string): HoldfastError {
  return new HoldfastError(reason, { message: `${path}: ${reason}, says the fake guest.`, metadata: { path } });
}
