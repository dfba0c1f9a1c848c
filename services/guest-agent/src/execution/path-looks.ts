import type { Clock } from "@holdfast/async";
import { userPathAnswerMs } from "@holdfast/contract";

/** A file system did not tell of a path in time: what is there is not known. */
export class PathUnanswered extends Error {
  constructor(path: string) {
    super(`its file system has not answered for ${userPathAnswerMs / 1_000} s`);
    this.name = "PathUnanswered";
    this.path = path;
  }
  readonly path: string;
}

/** Other paths were asked for before, and are not answered: nobody has looked. */
export class LooksHeld extends Error {
  constructor(paths: readonly string[]) {
    super(
      `what is to be used has not been looked at: file systems do not answer about ${paths.join(" and ")}. Nothing was begun. Mend or unmount ` +
        "them and try again, or suspend and resume the workspace. In the workspace's root programs are started all the same.",
    );
    this.name = "LooksHeld";
  }
}

/** Looks at a path of the user's: rejects as `ask`, or with PathUnanswered or LooksHeld. */
export type PathLook = Pick<PathLooks, "at">;

interface Look {
  readonly path: string;
  readonly begin: () => void;
  readonly refuse: (why: Error) => void;
}

/** Each that is not answered holds a thread of Node's pool of four, in which all files of the agent are read and written. */
const atOnceMax = 2;

/**
 * Looks at paths behind which may be a mount of the user's, one that is dead as well: each caller hears by its time, which is that for
 * waiting until its look begins and that for the look itself, and no more than two threads ever wait for a kernel that does not answer.
 */
export class PathLooks {
  readonly #clock: Clock;
  readonly #waiting = new Set<Look>();
  readonly #underWay = new Set<Look>();
  /** Of those that are under way: their callers have been told that there was no answer. */
  readonly #held = new Set<Look>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something is being looked at. The process cannot exit of itself before the kernel answers. */
  get isBusy(): boolean {
    return this.#underWay.size > 0;
  }

  /** Rejects as `ask`, or with PathUnanswered or LooksHeld. */
  async at<T>(path: string, ask: () => Promise<T>): Promise<T> {
    const held = [...this.#held].map((look) => look.path);
    if (held.some((dead) => path === dead || path.startsWith(`${dead}/`))) throw new PathUnanswered(path);
    if (held.length >= atOnceMax) throw new LooksHeld(held);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const inTime = (): (() => void) => this.#clock.schedule(userPathAnswerMs, () => this.#late(look));
    let cancelLate: () => void;
    const look: Look = {
      path,
      begin: () => {
        cancelLate();
        cancelLate = inTime(); // What it waited for others says nothing of its own file system.
        ask()
          .then(resolve, reject)
          .finally(() => this.#answered(look));
      },
      refuse: reject,
    };
    this.#waiting.add(look);
    cancelLate = inTime();
    this.#beginNext();
    return promise.finally(() => cancelLate());
  }

  #beginNext(): void {
    for (const look of this.#waiting) {
      if (this.#underWay.size >= atOnceMax) return;
      this.#waiting.delete(look);
      this.#underWay.add(look);
      look.begin();
    }
  }

  #answered(look: Look): void {
    this.#underWay.delete(look);
    this.#held.delete(look);
    this.#beginNext();
  }

  #late(look: Look): void {
    if (this.#waiting.delete(look)) {
      look.refuse(new LooksHeld([...this.#underWay].map(({ path }) => path)));
      return;
    }
    this.#held.add(look);
    look.refuse(new PathUnanswered(look.path));
  }
}
