import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { ConnectError } from "@connectrpc/connect";
import { AttachMode, type SessionExit, TerminalVerb } from "@holdfast/api/holdfast/v1/session_pb";
import { environmentOf } from "../environment.ts";
import { execFailedCode, wordsOf } from "../failure.ts";
import { remoteOf } from "../location.ts";
import { write } from "../print.ts";
import { printable } from "../printable.ts";
import type { Session } from "../program.ts";
import { EndOfInput } from "../terminal/end-of-input.ts";
import { beginRawMode } from "../terminal/raw-mode.ts";
import { RemoteTerminal, type TerminalScreen } from "../terminal/remote-terminal.ts";

export interface ShellOptions {
  readonly session?: string;
  readonly observe?: true;
  readonly ephemeral?: true;
  readonly cwd?: string;
  readonly env: readonly string[];
  /** The byte that detaches; undefined: none does. */
  readonly detachKey: number | undefined;
}

/** Output of a session that stands, before the cursor, that is shown again: about a screen. */
const shownAgainBytes = 32n * 1024n;
/** An outage shorter than this is nobody's business. */
const quietMs = 1_000;

/** Runs a program on a terminal of its own, or attaches to one, and exits as it did. */
export async function shell(
  { connection, signal, holderEpoch }: Session,
  workspace: string,
  words: readonly string[],
  options: ShellOptions,
) {
  const { workspaceId } = remoteOf(workspace);
  const [command = "", ...args] = words;
  const { TERM = "xterm-256color", COLORTERM } = process.env;
  const env = { TERM, ...(COLORTERM === undefined ? {} : { COLORTERM }), ...environmentOf(options.env) };
  const sessionId = options.session ?? `sh-${randomUUID().slice(0, 8)}`;
  const screen = new Screen();
  try {
    const begin =
      options.session === undefined
        ? {
            verb: TerminalVerb.OPEN_OR_ATTACH,
            program: { command, args, cwd: options.cwd ?? "", env },
            ...(options.ephemeral ? { persistent: false } : {}),
          }
        : {
            verb: TerminalVerb.ATTACH,
            mode: options.observe ? AttachMode.OBSERVE : AttachMode.EXCLUSIVE,
            fromOffset: await offsetToShow({ connection, signal }, workspaceId, options.session),
          };
    const size = sizeNow();
    const start = { workspaceId, sessionId, ...begin, ...(size && !options.observe ? { size } : {}) };
    const terminal = new RemoteTerminal(connection.sessions, start, screen, signal);
    using keyboard = new Keyboard(terminal, options);
    screen.onRoom = () => keyboard.resume();
    screen.onOutput = () => keyboard.heard();
    const end = await terminal.run(() => keyboard.start());
    keyboard[Symbol.dispose]();
    if (end.t === "exited") process.exitCode = exitOf(end.exit);
    else if (options.ephemeral !== true) {
      const asHolder = holderEpoch === undefined ? "" : ` --holder-epoch ${holderEpoch}`;
      console.error(
        `\nholdfast: detached; the program goes on: holdfast sh ${workspaceId} --session ${sessionId}${asHolder}`,
      );
    }
  } catch (error) {
    if (!(error instanceof ConnectError) || signal.aborted) throw error;
    console.error(`holdfast: ${wordsOf(error)}`);
    process.exitCode = execFailedCode;
  } finally {
    screen[Symbol.dispose]();
    process.stdin.unref?.();
  }
}

async function offsetToShow(
  { connection, signal }: Pick<Session, "connection" | "signal">,
  workspaceId: string,
  sessionId: string,
): Promise<bigint> {
  const { sessions } = await connection.sessions.listSessions({ workspaceId }, { signal });
  const end = sessions.find((session) => session.sessionId === sessionId)?.nextOffset ?? 0n;
  return end > shownAgainBytes ? end - shownAgainBytes : 0n;
}

/** This program's own terminal, as far as it shows something. */
class Screen implements TerminalScreen, Disposable {
  onRoom = (): void => undefined;
  onOutput = (): void => undefined;
  #telling: NodeJS.Timeout | undefined;
  #told = false;

  show(data: Uint8Array): Promise<void> {
    this.onOutput();
    return write(data);
  }

  gap(bytes: bigint): void {
    console.error(`\r\nholdfast: ${bytes} bytes of output are missing here\r`);
  }

  unsure(bytes: number): void {
    console.error(`\r\nholdfast: the last ${bytes} bytes typed may have been lost: look before typing them again\r`);
  }

  lost(why: unknown): void {
    this.#telling = setTimeout(() => {
      this.#told = true;
      console.error(`\r\nholdfast: the terminal is not reached, and is tried again (${wordsOf(why)})\r`);
    }, quietMs);
  }

  back(): void {
    clearTimeout(this.#telling);
    if (this.#told) console.error("\r\nholdfast: it is back\r");
    this.#told = false;
  }

  room(): void {
    this.onRoom();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#telling);
  }
}

/** What is typed here, until disposed. A terminal is in raw mode meanwhile. */
class Keyboard implements Disposable {
  readonly #terminal: RemoteTerminal;
  readonly #options: ShellOptions;
  readonly #onData = (data: Buffer): void => this.#typed(data);
  readonly #onEnd = (): void => {
    // A terminal that ends was hung up: nobody said that the program's input is at its end.
    if (process.stdin.isTTY) this.#terminal.detach();
    else this.#end = new EndOfInput(this.#terminal, this.#last);
  };
  readonly #onResize = (): void => {
    const size = sizeNow();
    if (size !== undefined) this.#terminal.resize(size);
  };
  readonly #restore = (): void => void process.stdin.setRawMode?.(false);
  #started = false;
  /** What was typed last. */
  #last: number | undefined;
  #end: EndOfInput | undefined;

  constructor(terminal: RemoteTerminal, options: ShellOptions) {
    this.#terminal = terminal;
    this.#options = options;
  }

  start(): void {
    this.#started = true;
    const { stdin, stdout } = process;
    if (stdin.isTTY) {
      beginRawMode();
      process.on("exit", this.#restore); // However this program ends, the terminal is usable after it.
    }
    stdin.on("data", this.#onData);
    if (!this.#options.observe) stdin.once("end", this.#onEnd);
    if (!this.#options.observe) stdout.on("resize", this.#onResize);
  }

  /** The program wrote something. */
  heard(): void {
    this.#end?.heard();
  }

  resume(): void {
    if (this.#started) process.stdin.resume();
  }

  [Symbol.dispose](): void {
    if (!this.#started) return;
    this.#started = false;
    const { stdin, stdout } = process;
    if (stdin.isTTY) stdin.setRawMode(false);
    process.off("exit", this.#restore);
    stdin.off("data", this.#onData);
    stdin.off("end", this.#onEnd);
    stdout.off("resize", this.#onResize);
    stdin.pause();
    this.#end?.[Symbol.dispose]();
  }

  #typed(data: Buffer): void {
    const { detachKey, observe } = this.#options;
    const at = detachKey === undefined || !process.stdin.isTTY ? -1 : data.indexOf(detachKey);
    const input = at < 0 ? data : data.subarray(0, at);
    this.#last = input.at(-1) ?? this.#last;
    if (!observe && input.byteLength > 0 && !this.#terminal.type(input)) process.stdin.pause();
    if (at >= 0) this.#terminal.detach();
  }
}

/** Undefined where nobody can see it. */
function sizeNow() {
  const { columns, rows, isTTY } = process.stdout;
  return isTTY && columns > 0 && rows > 0 ? { columns, rows } : undefined;
}

/** As a shell tells it: the code, or 128 and the signal's number. */
function exitOf({ status, message }: SessionExit): number {
  if (message !== "") console.error(`holdfast: ${printable(message)}`);
  if (status.case === "exitCode") return status.value;
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return 128 + (numbers[status.value ?? ""] ?? 0);
}
