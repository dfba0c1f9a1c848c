import type { SentRequest } from "./api-transport.ts";

export interface Deed {
  readonly replica: number;
  readonly method: SentRequest["method"];
  readonly plural: string;
  readonly isList: boolean;
  /** There is something to do it to. */
  readonly isDue: () => boolean;
  /** How many such requests go by first. */
  passes: number;
  readonly run: () => Promise<void>;
}

/** What somebody does just before a request is carried out: after its caller has decided on it. */
export class Meanwhile {
  #deeds: Deed[] = [];

  /** Before a request of this replica that is made when it is due. */
  add(deed: Readonly<Deed>): void {
    this.#deeds.push({ ...deed });
  }

  clear(): void {
    this.#deeds = [];
  }

  before(replica: number, { method, plural, name }: SentRequest): Promise<void> | undefined {
    const isList = name === "";
    const ofSuch = this.#deeds.filter(
      (one) => one.replica === replica && one.method === method && one.plural === plural && one.isList === isList,
    );
    const due = ofSuch.filter((one) => one.isDue());
    const deed = due.find(({ passes }) => passes === 0);
    for (const one of due) if (one !== deed && one.passes > 0) one.passes -= 1;
    if (!deed) return undefined;
    this.#deeds = this.#deeds.filter((one) => one !== deed);
    return deed.run();
  }
}
