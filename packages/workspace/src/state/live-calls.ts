import type { WorkspaceId } from "@holdfast/contract";

/** What callers may hold open in a guest for as long as they like. */
export type LiveCall = "executions" | "sessions" | "ports";

/** How many of each are held. */
export type LiveCounts = Readonly<Record<LiveCall, number>>;

/**
 * What one process holds open for its callers, by workspace: also through guests that were left, and handles that were let go, since
 * neither ends anybody's stream.
 */
export class LiveCalls {
  readonly #counts = new Map<WorkspaceId, Record<LiveCall, number>>();

  /** Counts one more; the returned function ends that, once. */
  take(id: WorkspaceId, call: LiveCall): () => void {
    const counts = this.#counts.get(id) ?? { ...none };
    this.#counts.set(id, counts);
    counts[call] += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      counts[call] -= 1;
      // What is idle keeps nothing here, however many workspaces there were.
      if (counts.executions + counts.sessions + counts.ports === 0) this.#counts.delete(id);
    };
  }

  /** As it is now. */
  of(id: WorkspaceId): LiveCounts {
    return { ...(this.#counts.get(id) ?? none) };
  }

  /** Workspaces of which something is held. */
  get size(): number {
    return this.#counts.size;
  }
}

const none: LiveCounts = { executions: 0, sessions: 0, ports: 0 };
