import type { WorkspaceId } from "@holdfast/contract";

/** A create that nobody answered and that is looked for. */
export interface SoughtCreate {
  /** A later call of this process uses what landed: it is not the failed call's to suspend any more. */
  takenOn: boolean;
}

/** The unanswered creates of one process, so that its handles know of those that earlier handles left. */
export class LateCreates {
  readonly #sought = new Map<WorkspaceId, Set<SoughtCreate>>();

  /** From now on it is looked for; the returned function ends that. */
  seek(id: WorkspaceId, create: SoughtCreate): () => void {
    const sought = this.#sought.get(id) ?? new Set();
    this.#sought.set(id, sought.add(create));
    return () => {
      sought.delete(create);
      if (sought.size === 0) this.#sought.delete(id);
    };
  }

  /** One of this workspace is looked for: that nothing stands proves nothing. */
  areSought(id: WorkspaceId): boolean {
    return this.#sought.has(id);
  }

  /** A start goes on with what stands. */
  takeOn(id: WorkspaceId): void {
    for (const create of this.#sought.get(id) ?? []) create.takenOn = true;
  }
}
