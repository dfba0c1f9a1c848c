/** A disk in use by a pod. It is not removed before `release`, even when its claim is. */
export interface HeldVolume {
  readonly path: string;
  /** The claim's. */
  readonly uid: string;
  /** Says that the pod's object is gone while its processes may still end: no other pod is given the disk before `release`. */
  leave(): void;
  release(): void;
}

interface Options {
  readonly pathOf: (uid: string) => string;
  /** A disk that a pod was leaving may be given to another one. */
  readonly onLeft: () => void;
  /** The last hold on the disk has ended. */
  readonly onFree: (uid: string) => void;
}

/** Which disks are in use, and by how many. */
export class HeldDisks {
  readonly #options: Options;
  readonly #holds = new Map<string, number>();
  /** Holds of pods whose objects are gone already, by uid. */
  readonly #leaving = new Map<string, number>();

  constructor(options: Options) {
    this.#options = options;
  }

  has(uid: string): boolean {
    return this.#holds.has(uid);
  }

  /** Tells whether a pod whose object is gone may still write to it. */
  isBeingLeft(uid: string): boolean {
    return this.#leaving.has(uid);
  }

  hold(uid: string): HeldVolume {
    countUp(this.#holds, uid);
    let held = true;
    let leaving = false;
    return {
      path: this.#options.pathOf(uid),
      uid,
      leave: () => {
        if (!held || leaving) return;
        leaving = true;
        countUp(this.#leaving, uid);
      },
      release: () => {
        if (!held) return;
        held = false;
        if (leaving && countDown(this.#leaving, uid) === 0) this.#options.onLeft();
        if (countDown(this.#holds, uid) === 0) this.#options.onFree(uid);
      },
    };
  }
}

function countUp(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** What is left; at 0 the key goes. */
function countDown(counts: Map<string, number>, key: string): number {
  const left = (counts.get(key) ?? 1) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
  return left;
}
