import { lstat } from "node:fs/promises";
import { treeDepthMax, watchedDirectoriesMax } from "@holdfast/contract";
import type { Descriptor } from "./descriptor.ts";
import { directoryEntries, isDirectory } from "./directory-entries.ts";
import { codeOf, refused } from "./file-errors.ts";
import { type Told, toldOf } from "./file-info.ts";
import { Inotify } from "./inotify.ts";
import type { Libc } from "./libc.ts";
import { isShown } from "./list-directory.ts";

/** A directory whose changes are heard. */
export interface WatchedDirectory {
  readonly watch: number;
  readonly told: Told;
  /** Undefined: the top. */
  readonly parent: WatchedDirectory | undefined;
  readonly name: Buffer;
  readonly depth: number;
  /** By name, as latin1: names are bytes. */
  readonly children: Map<string, WatchedDirectory>;
}

/** Pins the top for a while, and no longer: while a directory is pinned the kernel does not say that it was removed. */
export type PinTop = () => Promise<Disposable & { readonly directory: Descriptor }>;

type Found = (told: Told) => Promise<void>;

/** The directories of one watch, by the numbers that the kernel gives them. */
export class WatchedTree implements Disposable {
  readonly inotify: Inotify;
  readonly #wish: { readonly path: string; readonly recursive: boolean };
  readonly #pinTop: PinTop;
  readonly #told: Told;
  readonly #byWatch = new Map<number, WatchedDirectory>();

  constructor(libc: Libc, wish: { readonly path: string; readonly recursive: boolean }, pinTop: PinTop, told: Told) {
    this.#wish = wish;
    this.#pinTop = pinTop;
    this.#told = told;
    this.inotify = new Inotify(libc, wish.path);
  }

  get size(): number {
    return this.#byWatch.size;
  }

  of(watch: number): WatchedDirectory | undefined {
    return this.#byWatch.get(watch);
  }

  /** Watches everything that there is. */
  async arm(signal: AbortSignal): Promise<void> {
    using top = await this.#pinTop();
    const node = this.#enter(top.directory, undefined, Buffer.alloc(0), this.#told);
    if (this.#wish.recursive) await this.#descend(top.directory, node, signal, undefined);
  }

  /** Watches a directory that has come, and everything in it, which is told. */
  async addChild(parent: WatchedDirectory, name: Buffer, signal: AbortSignal, found: Found): Promise<void> {
    using top = await this.#pinTop();
    using directory = await pinBelow(top.directory, [...namesOf(parent), name]);
    if (directory === undefined) return; // Gone again, which has its own event.
    await this.#descend(directory, this.#enter(directory, parent, name, toldOf(parent.told, name)), signal, found);
  }

  /** Lets go of a directory that went from its parent, and of everything in it: it may live on elsewhere. */
  dropChild(parent: WatchedDirectory, name: Buffer): void {
    const child = parent.children.get(name.toString("latin1"));
    if (child) this.drop(child);
  }

  drop(directory: WatchedDirectory): void {
    for (const child of directory.children.values()) this.drop(child);
    const { parent, name, watch } = directory;
    if (parent?.children.get(name.toString("latin1")) === directory) parent.children.delete(name.toString("latin1"));
    if (this.#byWatch.get(watch) !== directory) return;
    this.#byWatch.delete(watch);
    this.inotify.remove(watch);
  }

  [Symbol.dispose](): void {
    this.inotify[Symbol.dispose]();
  }

  /** First the watch, then the list: what comes in between is heard, or listed, or both. */
  async #descend(directory: Descriptor, node: WatchedDirectory, signal: AbortSignal, found: Found | undefined) {
    for await (const batch of directoryEntries(directory)) {
      signal.throwIfAborted();
      for (const entry of batch) {
        if (!isShown(entry)) continue;
        const told = toldOf(node.told, entry.name);
        await found?.(told);
        if (!(await isDirectory(entry, (name) => lstat(directory.at(name))))) continue;
        using child = await directory.pinDirectory(entry.name).catch(unlessGone);
        if (child) await this.#descend(child, this.#enter(child, node, entry.name, told), signal, found);
      }
    }
  }

  #enter(directory: Descriptor, parent: WatchedDirectory | undefined, name: Buffer, told: Told): WatchedDirectory {
    const depth = (parent?.depth ?? 0) + 1;
    if (depth > treeDepthMax)
      throw this.#limit(`the tree is deeper than ${treeDepthMax} directories`, treeDepthMax, "treeDepthMax");
    if (this.size >= watchedDirectoriesMax) {
      throw this.#limit(
        `the tree has more than ${watchedDirectoriesMax} directories`,
        watchedDirectoriesMax,
        "watchedDirectoriesMax",
      );
    }
    const watch = this.inotify.add(directory.path);
    const known = this.#byWatch.get(watch);
    const children = known?.children ?? new Map<string, WatchedDirectory>();
    const node = { watch, told, parent, name, depth, children };
    if (known) {
      // The same directory under another name: it was moved, and the event of that is still to come.
      this.#byWatch.delete(watch);
      known.parent?.children.delete(known.name.toString("latin1"));
      children.clear();
    }
    this.#byWatch.set(watch, node);
    parent?.children.set(name.toString("latin1"), node);
    return node;
  }

  #limit(why: string, limit: number, setting: string) {
    return refused("WATCH_LIMIT", this.#wish.path, `${why}, so not everything could be watched. Watch a part of it`, {
      limit: String(limit),
      setting,
    });
  }
}

/** Finds a directory again by its names, none of which may be a link. */
async function pinBelow(top: Descriptor, names: readonly Buffer[]): Promise<Descriptor | undefined> {
  let at: Descriptor | undefined;
  for (const name of names) {
    const next: Descriptor | undefined = await (at ?? top).pinDirectory(name).catch(unlessGone);
    at?.[Symbol.dispose]();
    if (next === undefined) return undefined;
    at = next;
  }
  return at;
}

function namesOf(directory: WatchedDirectory): Buffer[] {
  return directory.parent === undefined ? [] : [...namesOf(directory.parent), directory.name];
}

function unlessGone(error: unknown): undefined {
  if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) throw error;
}
