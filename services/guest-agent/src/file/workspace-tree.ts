import { type BigIntStats, realpathSync } from "node:fs";
import { mkdir, readlink } from "node:fs/promises";
import { pathMaxBytes, symlinksMax } from "@holdfast/contract";
import { type Descriptor, pinConfigured } from "./descriptor.ts";
import type { Effect } from "./effect.ts";
import { codeOf, fileErrorOf, invalidFile, refused } from "./file-errors.ts";
import { syncDirectory } from "./sync-directory.ts";

/** The agent's own folder at the top of each mount; no path leads to it and no list shows it. */
export const stagingName = ".holdfast-tmp";

/** What stands at a place. */
export interface Entry {
  readonly pinned: Descriptor;
  readonly stat: BigIntStats;
}

/** Where a path leads, pinned component by component. Dispose of it when done. */
export interface Place extends Disposable {
  /** Below the root, without links and `..`; "" is the root. */
  readonly path: string;
  /** The directory that holds it and its name there; undefined for the root. */
  readonly within: { readonly parent: Descriptor; readonly name: string } | undefined;
  /** Undefined: nothing stands there. */
  readonly entry: Entry | undefined;
}

export interface ResolveOptions {
  /** Follow a symbolic link in the last component too. */
  readonly follow: boolean;
  /** Make directories that are missing before the last component, each as such a change. Absent: make none. */
  readonly makeParents?: Effect;
}

/**
 * The workspace's files. Every path is walked by hand: each component is pinned through its parent's descriptor without following
 * links, links are read and walked in turn, and `..` goes back along the descriptors that the walk itself holds. So no link, `..`
 * or rename during the walk leads to anything that is not below the root (G30). Mounts below the root are part of it.
 */
export class WorkspaceTree implements Disposable {
  readonly root: Descriptor;
  /** What an absolute path must begin with. */
  readonly #prefixes: readonly string[];

  private constructor(root: Descriptor, prefixes: readonly string[]) {
    this.root = root;
    this.#prefixes = prefixes;
  }

  static async open(root: string): Promise<WorkspaceTree> {
    const prefixes = new Set([root, realpathSync(root)].map((path) => componentsOf(path).join("/")));
    return new WorkspaceTree(await pinConfigured(root), [...prefixes]);
  }

  /** Finds where a path leads. FILE_NOT_FOUND when it breaks off before its last component. */
  async resolve(path: string, options: ResolveOptions): Promise<Place> {
    checkText(path);
    const way = new Way(this.root);
    try {
      return await this.#walk(way, path, options);
    } catch (error) {
      way[Symbol.dispose]();
      throw fileErrorOf(error, path);
    }
  }

  /** As `resolve`, of what must exist. */
  async require(path: string, options: ResolveOptions): Promise<Place & { readonly entry: Entry }> {
    const place = await this.resolve(path, options);
    const { entry } = place;
    if (entry !== undefined) return Object.assign(place, { entry });
    place[Symbol.dispose]();
    throw refused("FILE_NOT_FOUND", path, "there is no such file");
  }

  [Symbol.dispose](): void {
    this.root[Symbol.dispose]();
  }

  async #walk(way: Way, path: string, options: ResolveOptions): Promise<Place> {
    const pending = this.#below(path, path);
    let links = 0;
    for (;;) {
      const name = pending.shift();
      if (name === undefined) return way.here();
      if (name === "..") {
        if (!way.back()) throw outside(path);
        continue;
      }
      if (name === stagingName) throw invalidFile("path", `leads to ${stagingName}, which is the guest agent's own`);
      const last = pending.length === 0;
      // Not before a `..`: what comes after it could still lead out, and nothing is made for a path that does.
      const make = pending.includes("..") ? undefined : options.makeParents;
      const pinned = await this.#pin(way, name, last, make, path);
      if (pinned === undefined) return way.place(name, undefined);
      const stat = await way.owning(pinned, () => pinned.stat());
      if (stat.isSymbolicLink() && (!last || options.follow)) {
        links += 1;
        if (links > symlinksMax) throw tooManyLinks(path);
        pinned[Symbol.dispose]();
        const target = await readlink(way.top.at(name)).catch(unlessReplaced);
        if (target === undefined) {
          pending.unshift(name); // It is another file by now: look again. Counted as a link, so not for ever.
          continue;
        }
        if (target.startsWith("/")) way.restart();
        pending.unshift(...this.#below(target, path));
      } else if (last) {
        return way.place(name, { pinned, stat });
      } else if (stat.isDirectory()) {
        way.push(name, pinned, stat);
      } else {
        pinned[Symbol.dispose]();
        throw refused("FILE_NOT_FOUND", path, `${JSON.stringify(name)} is not a directory`);
      }
    }
  }

  /** Undefined: nothing stands there, which only the last component may say. */
  async #pin(
    way: Way,
    name: string,
    last: boolean,
    make: Effect | undefined,
    path: string,
  ): Promise<Descriptor | undefined> {
    for (;;) {
      try {
        return await way.top.pin(name);
      } catch (error) {
        if (codeOf(error) !== "ENOENT") throw error;
      }
      if (last) return undefined;
      if (make === undefined) throw refused("FILE_NOT_FOUND", path, `there is no directory ${JSON.stringify(name)}`);
      try {
        await make(() => mkdir(way.top.at(name), 0o755));
        await syncDirectory(way.top);
      } catch (error) {
        if (codeOf(error) !== "EEXIST") throw error; // Somebody else made it: look again what it is.
      }
    }
  }

  /** The components of a path or link target. Absolute ones are inside only below one of the root's names. */
  #below(text: string, path: string): string[] {
    const components = componentsOf(text);
    if (!text.startsWith("/")) return components;
    for (const prefix of this.#prefixes) {
      const own = prefix === "" ? [] : prefix.split("/");
      if (own.every((name, at) => components[at] === name)) return components.slice(own.length);
    }
    throw outside(path);
  }
}

/** The directories that a walk has come through, pinned. */
class Way implements Disposable {
  readonly #root: Descriptor;
  readonly #steps: { readonly name: string; readonly directory: Descriptor; readonly stat: BigIntStats }[] = [];
  #last: Descriptor | undefined;

  constructor(root: Descriptor) {
    this.#root = root;
  }

  get top(): Descriptor {
    return this.#steps.at(-1)?.directory ?? this.#root;
  }

  push(name: string, directory: Descriptor, stat: BigIntStats): void {
    this.#steps.push({ name, directory, stat });
  }

  /** False at the root. */
  back(): boolean {
    const step = this.#steps.pop();
    step?.directory[Symbol.dispose]();
    return step !== undefined;
  }

  restart(): void {
    while (this.back());
  }

  /** Runs work on a descriptor that is closed if it fails. */
  async owning<T>(pinned: Descriptor, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      pinned[Symbol.dispose]();
      throw error;
    }
  }

  /** Ends at an entry of the directory that was reached. */
  place(name: string, entry: Entry | undefined): Place {
    this.#last = entry?.pinned;
    const path = [...this.#steps.map((step) => step.name), name].join("/");
    return { path, within: { parent: this.top, name }, entry, [Symbol.dispose]: () => this[Symbol.dispose]() };
  }

  /** Ends at the directory that was reached. */
  async here(): Promise<Place> {
    const step = this.#steps.pop();
    if (step) return this.place(step.name, { pinned: step.directory, stat: step.stat });
    const entry = { pinned: this.#root, stat: await this.#root.stat() };
    return { path: "", within: undefined, entry, [Symbol.dispose]: () => this[Symbol.dispose]() };
  }

  [Symbol.dispose](): void {
    this.#last?.[Symbol.dispose]();
    this.restart();
  }
}

function unlessReplaced(error: unknown): undefined {
  if (!["EINVAL", "ENOENT"].includes(codeOf(error))) throw error;
}

/** `.` and empty components mean nothing. */
function componentsOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

function checkText(path: string): void {
  if (path.includes("\0")) throw invalidFile("path", "must not contain NUL");
  if (Buffer.byteLength(path) > pathMaxBytes) throw invalidFile("path", `is longer than ${pathMaxBytes} bytes`);
}

function outside(path: string) {
  return refused("PATH_OUTSIDE_WORKSPACE", path, "it leads outside the workspace's root. Nothing was read or changed");
}

function tooManyLinks(path: string) {
  return refused("INVALID_REQUEST", path, `it leads through more than ${symlinksMax} symbolic links`);
}
