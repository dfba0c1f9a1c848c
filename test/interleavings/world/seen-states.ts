/** A handle that was seen to say `suspended` when it had not before, and the versions among which its own reads lie. */
export interface SuspendedSeen {
  readonly replica: number;
  readonly fromRevision: number;
  readonly toRevision: number;
}

/** More requests than lie between the read that a state rests on and the state. */
const requestsKept = 8;

/** What the replicas' handles said of the workspace, as it changed. */
export class SeenStates {
  readonly suspended: SuspendedSeen[] = [];
  readonly #last = new Map<number, string>();
  readonly #asked = new Map<number, number[]>();

  /** A new process. */
  begin(replica: number): void {
    this.#last.delete(replica);
    this.#asked.set(replica, []);
  }

  asked(replica: number, revision: number): void {
    this.#asked.set(replica, [...(this.#asked.get(replica) ?? []), revision].slice(-requestsKept));
  }

  seen(replica: number, state: string, revision: number): void {
    if (this.#last.get(replica) === state) return;
    this.#last.set(replica, state);
    if (state !== "suspended") return;
    this.suspended.push({ replica, fromRevision: this.#asked.get(replica)?.[0] ?? 0, toRevision: revision });
  }
}
