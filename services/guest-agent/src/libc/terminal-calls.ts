import { closeSync, constants, openSync } from "node:fs";
import { type Koffi, nameOfErrno } from "./koffi.ts";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A PTY: the agent's side of it, and the name of the program's. */
export interface PtyPair {
  readonly master: number;
  readonly path: string;
}

/** What the kernel does with terminals that Node does not offer. Each throws what the kernel says, with its `code`. */
export interface TerminalCalls {
  /** A new PTY of this size, unlocked. Its master does not block and is closed by whoever asked. */
  openPty(size: TerminalSize): PtyPair;
  /** SIGWINCH goes to its foreground processes when that changes anything. */
  resize(master: number, size: TerminalSize): void;
  /** The process group in its foreground; 0 when there is none. */
  foregroundGroup(master: number): number;
}

const setSizeRequest = 0x5414; // TIOCSWINSZ
const foregroundGroupRequest = 0x540f; // TIOCGPGRP
const ptyNumberRequest = 0x80045430; // TIOCGPTN
const setLockRequest = 0x40045431; // TIOCSPTLCK
const attributesBytes = 256;
const applyNow = 0;
/** Input is UTF-8: erasing takes a character, not a byte. */
const utf8Input = 0o40_000;

export function terminalCallsOf(koffi: Koffi): TerminalCalls {
  const lib = koffi.load(null);
  const ioctl = lib.func("int ioctl(int fd, unsigned long request, void *argument)");
  const tcgetattr = lib.func("int tcgetattr(int fd, void *attributes)");
  const tcsetattr = lib.func("int tcsetattr(int fd, int when, void *attributes)");
  const checked = (result: number, call: string): void => {
    if (result >= 0) return;
    const code = nameOfErrno(koffi, koffi.errno());
    throw Object.assign(new Error(`${code}: ${call}`), { code });
  };
  const resize = (master: number, { columns, rows }: TerminalSize): void => {
    const size = Buffer.alloc(8);
    size.writeUInt16LE(rows, 0);
    size.writeUInt16LE(columns, 2);
    checked(ioctl(master, setSizeRequest, size), "TIOCSWINSZ");
  };
  return {
    openPty(size) {
      const master = openSync("/dev/ptmx", constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
      try {
        checked(ioctl(master, setLockRequest, Buffer.alloc(4)), "TIOCSPTLCK");
        const number = Buffer.alloc(4);
        checked(ioctl(master, ptyNumberRequest, number), "TIOCGPTN");
        const attributes = Buffer.alloc(attributesBytes);
        checked(tcgetattr(master, attributes), "tcgetattr");
        attributes.writeUInt32LE(attributes.readUInt32LE(0) | utf8Input, 0);
        checked(tcsetattr(master, applyNow, attributes), "tcsetattr");
        resize(master, size);
        return { master, path: `/dev/pts/${number.readUInt32LE(0)}` };
      } catch (error) {
        closeSync(master);
        throw error;
      }
    },
    resize,
    foregroundGroup(master) {
      const group = Buffer.alloc(4);
      checked(ioctl(master, foregroundGroupRequest, group), "TIOCGPGRP");
      return group.readInt32LE(0);
    },
  };
}
