import { lstat } from "node:fs/promises";
import type { WalkRequest } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { treeDepthMax, walkVisitedMax } from "@holdfast/contract";
import type { Descriptor } from "./descriptor.ts";
import { directoryEntries, isDirectory } from "./directory-entries.ts";
import { codeOf, fileErrorOf, invalidFile, refused } from "./file-errors.ts";
import { type FileInfoInit, type Told, toldOf } from "./file-info.ts";
import { Glob, type GlobState } from "./glob.ts";
import { infosOf, isShown, requireDirectory } from "./list-directory.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

/** Lists a tree, parents before children, never through a link. Either the list is whole, up to `max_entries`, or the walk fails. */
export async function* walkTree(tree: WorkspaceTree, request: WalkRequest, signal: AbortSignal) {
  const { path } = request;
  const walk = new Walk(request, signal);
  using place = await requireDirectory(tree, path);
  try {
    yield* walk.below(place.entry.pinned, { path: place.path, rawName: undefined }, walk.glob.top, 1);
  } catch (error) {
    throw fileErrorOf(error, path);
  }
}

class Walk {
  readonly glob: Glob;
  readonly #path: string;
  readonly #signal: AbortSignal;
  readonly #maxDepth: number;
  readonly #maxVisited: number;
  #left: number;
  #visited = 0;

  constructor(request: WalkRequest, signal: AbortSignal) {
    this.glob = new Glob(request.glob, request.hidden);
    this.#path = request.path;
    this.#signal = signal;
    this.#maxDepth = request.maxDepth === 0 ? Number.POSITIVE_INFINITY : request.maxDepth;
    this.#left = request.maxEntries === 0n ? Number.POSITIVE_INFINITY : Number(request.maxEntries);
    this.#maxVisited = request.maxVisited === 0n ? walkVisitedMax : Number(request.maxVisited);
    if (this.#maxVisited > walkVisitedMax) throw invalidFile("max_visited", `is more than ${walkVisitedMax}`);
  }

  /** Yields what matches in a directory, then what matches below each of its directories. */
  async *below(directory: Descriptor, told: Told, state: GlobState, depth: number): AsyncGenerator<FileInfoInit[]> {
    if (depth > treeDepthMax) {
      const limit = { limit: String(treeDepthMax), setting: "treeDepthMax" };
      throw this.#limit(`it is deeper than ${treeDepthMax} directories`, limit);
    }
    const inner: { readonly name: Buffer; readonly state: GlobState }[] = [];
    for await (const batch of directoryEntries(directory)) {
      this.#signal.throwIfAborted();
      const matched = [];
      for (const entry of batch) {
        if (!isShown(entry)) continue;
        this.#visit();
        const step = this.glob.step(state, entry.name.toString());
        if (step.matched) matched.push(entry);
        if (step.below === undefined || depth >= this.#maxDepth) continue;
        if (await isDirectory(entry, (name) => lstat(directory.at(name)))) {
          inner.push({ name: entry.name, state: step.below });
        }
      }
      const infos = (await infosOf(directory, told, matched)).slice(0, this.#left);
      this.#left -= infos.length;
      if (infos.length > 0) yield infos;
      if (this.#left === 0) return;
    }
    for (const { name, state } of inner) {
      using child = await directory.pinDirectory(name).catch(unlessGone);
      if (child) yield* this.below(child, toldOf(told, name), state, depth + 1);
      if (this.#left === 0) return;
    }
  }

  #visit(): void {
    this.#visited += 1;
    if (this.#visited <= this.#maxVisited) return;
    throw this.#limit(`more than ${this.#maxVisited} entries were looked at (max_visited)`, {
      field: "max_visited",
      limit: String(this.#maxVisited),
    });
  }

  #limit(why: string, limit: Readonly<Record<string, string>>) {
    return refused("WALK_LIMIT", this.#path, `the list is not whole: ${why}. Walk a smaller part of the tree`, limit);
  }
}

/** A directory may go, or become something else, after its name was read. */
function unlessGone(error: unknown): undefined {
  if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) throw error;
}
