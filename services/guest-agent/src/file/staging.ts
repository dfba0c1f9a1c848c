import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { constants, realpathSync } from "node:fs";
import { mkdir, rmdir, unlink } from "node:fs/promises";
import { promisify } from "node:util";
import { Descriptor } from "./descriptor.ts";
import { codeOf, refused } from "./file-errors.ts";
import { mountIdOf, mountPoints } from "./mounts.ts";
import { clearDirectory } from "./remove-tree.ts";
import { stagingName, type WorkspaceTree } from "./workspace-tree.ts";

const open = promisify(fs.open);
/** The folder may go between the look at it and the use of it, when another write ends. Each try makes it anew. */
const triesMax = 20;

/** A file that has no name of its own yet. */
export interface StagedFile {
  readonly file: Descriptor;
  /** The folder it stands in, and its name there. */
  readonly folder: Descriptor;
  readonly name: string;
  /** Closes it and removes its name, if that has not become another. */
  discard(): Promise<void>;
}

/**
 * Where files are written before they get their names: a folder at the top of the mount, so that a rename leads from it to any place
 * on that mount, and so that what a killed agent leaves is found by the next one. It stands only while something is written.
 */
export class Staging {
  readonly #tree: WorkspaceTree;
  readonly #realRoot: string;

  constructor(tree: WorkspaceTree, root: string) {
    this.#tree = tree;
    this.#realRoot = realpathSync(root);
  }

  /** Makes an empty file that can be renamed into a directory. */
  async create(into: Descriptor): Promise<StagedFile> {
    using top = await this.#topOf(into);
    for (let tries = 1; ; tries += 1) {
      const folder = await this.#folder(top.directory);
      try {
        return await this.#createIn(folder, top.directory);
      } catch (error) {
        folder[Symbol.dispose]();
        if (codeOf(error) !== "ENOENT" || tries >= triesMax) throw error;
      }
    }
  }

  /** Removes what a former agent left. Called before anything is written. */
  async clear(): Promise<void> {
    const below = this.#realRoot === "/" ? "/" : `${this.#realRoot}/`;
    const points = [...(await mountPoints()).values()].filter((point) => point.startsWith(below));
    for (const path of ["", ...points.map((point) => point.slice(below.length))]) {
      try {
        using top = await this.#tree.resolve(path, { follow: false });
        if (!top.entry?.stat.isDirectory()) continue;
        using folder = await top.entry.pinned.pinDirectory(stagingName);
        await clearDirectory(folder, { signal: new AbortController().signal, effect: (change) => change() });
        await rmdir(top.entry.pinned.at(stagingName));
      } catch (error) {
        if (codeOf(error) !== "ENOENT") console.error(`clearing ${stagingName} of ${JSON.stringify(path)}:`, error);
      }
    }
  }

  async #createIn(folder: Descriptor, top: Descriptor): Promise<StagedFile> {
    const name = randomBytes(12).toString("hex");
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_NOFOLLOW;
    // The top may be disposed of with the place that it was found through.
    const lastingTop = await top.pinDirectory(".");
    let file: Descriptor;
    try {
      file = new Descriptor(await open(folder.at(name), flags, 0o600));
    } catch (error) {
      lastingTop[Symbol.dispose]();
      throw error;
    }
    return {
      file,
      folder,
      name,
      discard: async () => {
        try {
          file[Symbol.dispose]();
          await unlink(folder.at(name)).catch(unlessGone);
          await rmdir(lastingTop.at(stagingName)).catch(unlessInUse);
        } catch (error) {
          // What became of the write is decided by then; this is for the next agent to remove.
          console.error(`${stagingName}/${name} stays behind:`, error);
        } finally {
          folder[Symbol.dispose]();
          lastingTop[Symbol.dispose]();
        }
      },
    };
  }

  async #folder(top: Descriptor): Promise<Descriptor> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await top.pinDirectory(stagingName);
      } catch (error) {
        if (codeOf(error) !== "ENOENT" || tries >= triesMax) throw error;
      }
      await mkdir(top.at(stagingName), 0o700).catch(unlessThere);
    }
  }

  /** The topmost directory of the mount, as far as it lies in the workspace. */
  async #topOf(directory: Descriptor): Promise<Disposable & { readonly directory: Descriptor }> {
    const mount = await mountIdOf(directory);
    const { root } = this.#tree;
    if (mount === (await mountIdOf(root))) return { directory: root, [Symbol.dispose]: () => undefined };
    const point = (await mountPoints()).get(mount) ?? "";
    const place = await this.#tree.require(point, { follow: false });
    if ((await mountIdOf(place.entry.pinned)) === mount) {
      return { directory: place.entry.pinned, [Symbol.dispose]: () => place[Symbol.dispose]() };
    }
    place[Symbol.dispose]();
    throw refused("FILE_ACCESS_DENIED", point, "the top of the mount was not found; files cannot be written on it");
  }
}

function unlessGone(error: unknown): void {
  if (codeOf(error) !== "ENOENT") throw error;
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}

function unlessInUse(error: unknown): void {
  if (!["ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY"].includes(codeOf(error))) throw error;
}
