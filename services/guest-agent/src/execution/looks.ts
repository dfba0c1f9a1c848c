/** One question, to be answered from what a look reads. */
interface Question<View> {
  answer(view: View): void;
  fail(error: unknown): void;
}

/**
 * Has all who ask at the same moment look together, so that many questions cost one look. A question is never answered by a look that
 * began before it was asked: what is gone in the answer was gone after the question.
 */
export class Looks<View> {
  readonly #begin: () => View;
  readonly #schedule: (look: () => void) => void;
  #waiting: Question<View>[] = [];

  /** `begin` begins a look. `schedule` runs one when those who ask now have asked. */
  constructor(begin: () => View, schedule: (look: () => void) => void = setImmediate) {
    this.#begin = begin;
    this.#schedule = schedule;
  }

  /** `read` is called once, synchronously; what it throws is this question's alone. */
  ask<T>(read: (view: View) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.#waiting.length === 0) this.#schedule(() => this.#look());
    this.#waiting.push({ answer: (view) => resolve(read(view)), fail: reject });
    return promise;
  }

  #look(): void {
    const questions = this.#waiting;
    this.#waiting = []; // Whoever asks from here on is answered by the next.
    const view = this.#begin();
    for (const question of questions) {
      try {
        question.answer(view);
      } catch (error) {
        question.fail(error);
      }
    }
  }
}
