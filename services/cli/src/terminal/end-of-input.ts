/** What a terminal's own keyboard says by Ctrl-D. */
const ctrlD = 4;
const enter = 13;
const lineEnds = new Set([10, enter, ctrlD]);

const againFirstMs = 250;
const againMaxMs = 30_000;
/** After the last that was written: a prompt may stand there now, which has not seen it. */
const afterOutputFirstMs = 500;
const afterOutputMaxMs = 5_000;
/** At which try a last line that has no end gets one: by then whoever reads lines has had it without. */
const enterAtTry = 3;

/** The terminal to be told. */
export interface EndedTerminal {
  type(data: Uint8Array): void;
  /** Bytes typed that may not have arrived. */
  readonly unconfirmedBytes: number;
}

/**
 * Tells a program on a terminal that its input is at its end, where what is typed comes from a pipe. A terminal has no end: Ctrl-D ends one read of who
 * reads lines, and twice where the line is not empty. It is lost on who was not reading yet, and on a line editor whose line is not
 * empty; so it is typed again, ever more rarely, while the program goes on. A last line without an end gets Enter when it has not been
 * taken by then: nothing else ends the line of an editor.
 */
export class EndOfInput implements Disposable {
  readonly #terminal: EndedTerminal;
  readonly #lineIsOpen: boolean;
  #tries = 0;
  #againMs = againFirstMs;
  #afterOutputMs = afterOutputFirstMs;
  #timer: NodeJS.Timeout | undefined;

  /** `last`: the last byte that was typed; undefined: nothing was. */
  constructor(terminal: EndedTerminal, last: number | undefined) {
    this.#terminal = terminal;
    this.#lineIsOpen = last !== undefined && !lineEnds.has(last);
    this.#tell();
  }

  /** The program wrote something. */
  heard(): void {
    if (this.#timer === undefined || this.#againMs <= this.#afterOutputMs) return;
    this.#againMs = this.#afterOutputMs;
    this.#arm();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #tell(): void {
    this.#timer = undefined;
    // One that has not arrived says it still: a program that does not read is not buried under them.
    if (this.#terminal.unconfirmedBytes === 0 || this.#tries === 0) {
      this.#terminal.type(this.#keys());
      this.#tries += 1;
      this.#afterOutputMs = Math.min(afterOutputMaxMs, afterOutputFirstMs * 2 ** Math.max(0, this.#tries - enterAtTry));
    }
    this.#arm();
  }

  #keys(): Uint8Array {
    if (!this.#lineIsOpen || this.#tries > enterAtTry) return new Uint8Array([ctrlD]);
    return new Uint8Array(this.#tries < enterAtTry ? [ctrlD, ctrlD] : [enter]);
  }

  #arm(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(), this.#againMs);
    this.#againMs = Math.min(againMaxMs, this.#againMs * 2);
  }
}
