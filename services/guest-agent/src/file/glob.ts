import { pathMaxBytes } from "@holdfast/contract";
import { invalidFile } from "./file-errors.ts";

const alternativesMax = 64;

/** One component of a pattern: any number of components, or tokens for one. */
type Segment = "**" | readonly Token[];
type Token = { readonly t: "char"; readonly char: string } | { readonly t: "any" } | { readonly t: "star" } | CharSet;
interface CharSet {
  readonly t: "set";
  readonly negated: boolean;
  readonly ranges: readonly (readonly [from: string, to: string])[];
}

/** How far into which alternatives the components above have led. */
export type GlobState = readonly (readonly [alternative: number, at: number])[];

/** What a name means below a directory that was reached with a state. */
export interface GlobStep {
  readonly matched: boolean;
  /** Undefined: nothing below this name can match. */
  readonly below: GlobState | undefined;
}

/**
 * A glob that is matched component by component, while a tree is walked: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\` and `**` as a whole
 * component. Time grows with the product of the lengths and no faster, whatever the pattern: it comes from a caller, and names from
 * whoever fills the disk. (docs/decisions/0010-own-glob.md)
 */
export class Glob {
  readonly #alternatives: readonly (readonly Segment[])[];
  readonly #hidden: boolean;

  /** Empty: everything. Names that begin with '.' match only when `hidden` is set or the pattern has the '.'. */
  constructor(text: string, hidden: boolean) {
    if (Buffer.byteLength(text) > pathMaxBytes) throw invalidFile("glob", `is longer than ${pathMaxBytes} bytes`);
    if (text.includes("\0")) throw invalidFile("glob", "must not contain NUL");
    this.#hidden = hidden;
    this.#alternatives = alternativesOf(text === "" ? "**" : text).map((pattern) => segmentsOf(pattern));
  }

  /** At the top, above all names. */
  get top(): GlobState {
    return this.#alternatives.flatMap((_, alternative) => this.#from(alternative, 0));
  }

  step(state: GlobState, name: string): GlobStep {
    const chars = Array.from(name);
    const next: (readonly [number, number])[] = [];
    for (const [alternative, at] of state) {
      const segment = this.#alternatives[alternative]?.[at];
      if (segment === undefined) continue;
      if (segment === "**") {
        if (name.startsWith(".") && !this.#hidden) continue;
        // A last `**` stands for one component or more, another one also for none.
        next.push([alternative, at]);
        if (this.#isLast(alternative, at)) next.push([alternative, at + 1]);
        else next.push(...this.#from(alternative, at + 1));
      } else if (matchesSegment(segment, chars, this.#hidden)) {
        next.push(...this.#from(alternative, at + 1));
      }
    }
    const states = new Map(next.map((one) => [`${one[0]}:${one[1]}`, one]));
    const matched = next.some(([alternative, at]) => at === this.#alternatives[alternative]?.length);
    const below = [...states.values()].filter(([alternative, at]) => at !== this.#alternatives[alternative]?.length);
    return { matched, below: below.length === 0 ? undefined : below };
  }

  #isLast(alternative: number, at: number): boolean {
    return at + 1 === this.#alternatives[alternative]?.length;
  }

  /** A place in a pattern, and those behind it that are reached through nothing. */
  #from(alternative: number, at: number): (readonly [number, number])[] {
    const here: readonly [number, number] = [alternative, at];
    const skips = this.#alternatives[alternative]?.[at] === "**" && !this.#isLast(alternative, at);
    return skips ? [here, ...this.#from(alternative, at + 1)] : [here];
  }
}

/** Goes back only to the last star: an earlier one could not do better. */
function matchesSegment(tokens: readonly Token[], chars: readonly string[], hidden: boolean): boolean {
  const first = tokens[0];
  if (chars[0] === "." && !hidden && !(first?.t === "char" && first.char === ".")) return false;
  let at = 0;
  let token = 0;
  let star = -1;
  let starAt = 0;
  while (at < chars.length) {
    const wanted = tokens[token];
    if (wanted?.t === "star") {
      star = token;
      starAt = at;
      token += 1;
    } else if (wanted !== undefined && matchesChar(wanted, chars[at] ?? "")) {
      at += 1;
      token += 1;
    } else if (star >= 0) {
      starAt += 1;
      at = starAt;
      token = star + 1;
    } else {
      return false;
    }
  }
  while (tokens[token]?.t === "star") token += 1;
  return token === tokens.length;
}

function matchesChar(token: Token, char: string): boolean {
  if (token.t === "any") return true;
  if (token.t === "char") return token.char === char;
  if (token.t === "star") return false;
  return token.ranges.some(([from, to]) => from <= char && char <= to) !== token.negated;
}

function segmentsOf(pattern: string): Segment[] {
  const segments: Segment[] = [];
  for (const part of splitOutside(pattern, "/")) {
    if (part === "" || part === ".") continue;
    if (part === "**" && segments.at(-1) === "**") continue;
    segments.push(part === "**" ? "**" : tokensOf(part));
  }
  return segments;
}

function tokensOf(part: string): Token[] {
  const chars = Array.from(part);
  const tokens: Token[] = [];
  for (let at = 0; at < chars.length; at += 1) {
    const char = chars[at] ?? "";
    const set = char === "[" ? setOf(chars, at) : undefined;
    if (char === "\\" && at + 1 < chars.length) {
      at += 1;
      tokens.push({ t: "char", char: chars[at] ?? "" });
    } else if (char === "*") {
      if (tokens.at(-1)?.t !== "star") tokens.push({ t: "star" });
    } else if (char === "?") {
      tokens.push({ t: "any" });
    } else if (set !== undefined) {
      tokens.push(set.token);
      at = set.end;
    } else {
      tokens.push({ t: "char", char });
    }
  }
  return tokens;
}

/** A set from '[' to its ']', which may stand first without ending it; undefined when it does not end: then '[' is itself. */
function setOf(chars: readonly string[], open: number): { readonly token: CharSet; readonly end: number } | undefined {
  let at = open + 1;
  const negated = chars[at] === "!" || chars[at] === "^";
  if (negated) at += 1;
  const ranges: (readonly [string, string])[] = [];
  for (let first = true; at < chars.length; first = false) {
    let from = chars[at] ?? "";
    if (from === "]" && !first) return { token: { t: "set", negated, ranges }, end: at };
    if (from === "\\" && at + 1 < chars.length) {
      at += 1;
      from = chars[at] ?? "";
    }
    const to = chars[at + 2];
    if (chars[at + 1] === "-" && to !== undefined && to !== "]") {
      ranges.push([from, to]);
      at += 3;
    } else {
      ranges.push([from, from]);
      at += 1;
    }
  }
  return undefined;
}

/** A pattern without its braces: one for each choice. Braces without a comma, or without an end, are themselves. */
function alternativesOf(pattern: string): string[] {
  const done: string[] = [];
  const pending = [pattern];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const brace = firstBrace(next);
    if (brace === undefined) done.push(next);
    else for (const choice of brace.choices) pending.push(`${brace.before}${choice}${brace.after}`);
    if (done.length + pending.length > alternativesMax) {
      throw invalidFile("glob", `has more than ${alternativesMax} alternatives in its braces`);
    }
  }
  return done;
}

function firstBrace(pattern: string) {
  for (let open = 0; open < pattern.length; open += 1) {
    if (pattern[open] === "\\") open += 1;
    else if (pattern[open] === "{") {
      const close = closingBrace(pattern, open);
      if (close === undefined) continue;
      const choices = splitOutside(pattern.slice(open + 1, close), ",");
      if (choices.length < 2) continue;
      return { before: pattern.slice(0, open), choices, after: pattern.slice(close + 1) };
    }
  }
  return undefined;
}

function closingBrace(pattern: string, open: number): number | undefined {
  let depth = 0;
  for (let at = open; at < pattern.length; at += 1) {
    if (pattern[at] === "\\") at += 1;
    else if (pattern[at] === "{") depth += 1;
    else if (pattern[at] === "}") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return undefined;
}

/** Splits where the separator stands neither escaped nor in braces. */
function splitOutside(text: string, separator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "{") depth += 1;
    else if (text[at] === "}") depth -= 1;
    else if (text[at] === separator && (depth <= 0 || separator === "/")) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  parts.push(text.slice(from));
  return parts;
}
