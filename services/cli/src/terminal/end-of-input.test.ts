import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EndOfInput } from "./end-of-input.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const byte = (text: string): number | undefined => Buffer.from(text).at(-1);
const shown = (keys: Uint8Array): string => [...keys].map((key) => ({ 4: "^D", 13: "Enter" })[key] ?? "?").join("");

function terminal(unconfirmedBytes = 0) {
  const typed: string[] = [];
  return {
    typed,
    unconfirmedBytes,
    type(keys: Uint8Array) {
      typed.push(shown(keys));
    },
  };
}

describe("the end of piped input", () => {
  it.each(["", "line\n", "line\r"])("is Ctrl-D where no line is open: after %j", (text) => {
    const to = terminal();
    using _ = new EndOfInput(to, byte(text));
    expect(to.typed).toEqual(["^D"]);
    vi.advanceTimersByTime(60_000);
    expect(new Set(to.typed)).toEqual(new Set(["^D"]));
  });

  it("is two where a line is open; an editor that has not taken it gets Enter later, and only once", () => {
    const to = terminal();
    using _ = new EndOfInput(to, byte("exit 4"));
    expect(to.typed).toEqual(["^D^D"]);
    vi.advanceTimersByTime(60_000);
    expect(to.typed.slice(0, 5)).toEqual(["^D^D", "^D^D", "^D^D", "Enter", "^D"]);
    expect(to.typed.filter((keys) => keys === "Enter")).toHaveLength(1);
  });

  it("is said ever more rarely while the program goes on, and no more once it is over", () => {
    const to = terminal();
    const end = new EndOfInput(to, byte("make\n"));
    vi.advanceTimersByTime(3_600_000);
    expect(to.typed.length).toBeGreaterThan(100);
    expect(to.typed.length).toBeLessThan(140);
    const { length } = to.typed;
    end[Symbol.dispose]();
    end.heard();
    vi.advanceTimersByTime(3_600_000);
    expect(to.typed).toHaveLength(length);
  });

  it("is said soon after the program wrote something, as a prompt may be; not while it goes on writing", () => {
    const to = terminal();
    using end = new EndOfInput(to, byte("make\n"));
    vi.advanceTimersByTime(60_000);
    const { length } = to.typed;
    for (let at = 0; at < 1_000; at += 1) {
      end.heard();
      vi.advanceTimersByTime(100);
    }
    expect(to.typed).toHaveLength(length);
    vi.advanceTimersByTime(5_000);
    expect(to.typed).toHaveLength(length + 1);
  });

  it("is not piled up on a program whose terminal takes no more", () => {
    const to = terminal(1);
    using _ = new EndOfInput(to, byte("make\n"));
    vi.advanceTimersByTime(3_600_000);
    expect(to.typed).toEqual(["^D"]);
    to.unconfirmedBytes = 0;
    vi.advanceTimersByTime(30_000);
    expect(to.typed).toEqual(["^D", "^D"]);
  });
});
