import type { Clock } from "@holdfast/async";
import type { SentRequest } from "./api-transport.ts";

interface Rule {
  readonly replica: number;
  readonly method: SentRequest["method"];
  readonly plural: string;
  readonly isList: boolean;
  readonly ms: number;
  readonly met: () => void;
}

/** Answers that are long on their way: what they tell was true when the request was carried out, and may be no longer. */
export class SlowAnswers {
  readonly #clock: Clock;
  #rules: Rule[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The next such answer of this replica. */
  add(rule: Rule): void {
    this.#rules.push(rule);
  }

  clear(): void {
    this.#rules = [];
  }

  delayOf(replica: number, { method, plural, name }: SentRequest): Promise<void> | undefined {
    const isList = name === "";
    const rule = this.#rules.find(
      (one) => one.replica === replica && one.method === method && one.plural === plural && one.isList === isList,
    );
    if (!rule) return undefined;
    this.#rules = this.#rules.filter((one) => one !== rule);
    rule.met();
    return new Promise((resolve) => this.#clock.schedule(rule.ms, resolve));
  }
}
