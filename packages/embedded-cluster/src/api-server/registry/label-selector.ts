import { objectIn } from "../../json.ts";
import { badRequest } from "../refusals.ts";

/** One requirement of a label selector. */
type Requirement = (label: string | undefined) => boolean;

interface Token {
  readonly kind: "identifier" | "operator" | "end";
  readonly text: string;
}

const operators = ["!=", "==", "=", "!", "(", ")", ",", ">", "<"];
const key = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/u;
const value = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/u;

/** Reads a label selector as the real server's parser does, its words for what it cannot read included. */
export function labelTests(selector: string): ((object: unknown) => boolean)[] {
  return new Parser(selector).requirements().map(
    ([label, holds]) =>
      (object: unknown) =>
        holds(labelOf(object, label)),
  );
}

function labelOf(object: unknown, label: string): string | undefined {
  const labels = objectIn(objectIn(object, "metadata"), "labels");
  const found = labels !== undefined && Object.hasOwn(labels, label) ? labels[label] : undefined;
  return typeof found === "string" ? found : undefined;
}

class Parser {
  readonly #tokens: Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  requirements(): [string, Requirement][] {
    const found: [string, Requirement][] = [];
    if (this.#next.kind === "end") return found;
    for (;;) {
      const { kind, text } = this.#next;
      if (kind !== "identifier" && text !== "!") throw unexpected(text, "!, identifier, or 'end of string'");
      found.push(inRequirement(() => this.#requirement()));
      const after = this.#take();
      if (after.kind === "end") return found;
      if (after.text !== ",") throw unexpected(after.text, "',' or 'end of string'");
      if (this.#next.kind !== "identifier" && this.#next.text !== "!") {
        throw badRequest(`found '${this.#next.text}', expected: identifier after ','`);
      }
    }
  }

  #requirement(): [string, Requirement] {
    const isNegated = this.#next.text === "!";
    if (isNegated) this.#take();
    const name = this.#take();
    if (name.kind !== "identifier") throw new Unreadable(name.text, "identifier");
    if (!key.test(name.text)) throw new Unreadable(name.text, "a label key");
    if (isNegated) return [name.text, (label) => label === undefined];
    const { kind, text } = this.#next;
    if (kind === "end" || text === ",") return [name.text, (label) => label !== undefined];
    this.#take();
    switch (text) {
      case "=":
      case "==": {
        const wanted = this.#exactValue();
        return [name.text, (label) => label === wanted];
      }
      case "!=": {
        const wanted = this.#exactValue();
        return [name.text, (label) => label !== wanted];
      }
      case "in": {
        const wanted = this.#values();
        return [name.text, (label) => label !== undefined && wanted.has(label)];
      }
      case "notin": {
        const wanted = this.#values();
        return [name.text, (label) => label === undefined || !wanted.has(label)];
      }
      case ">":
      case "<": {
        const bound = Number(this.#exactValue());
        if (!Number.isSafeInteger(bound)) throw new Unreadable(String(bound), "an integer");
        const isBeyond = (given: number): boolean => (text === ">" ? given > bound : given < bound);
        return [name.text, (label) => label !== undefined && /^-?\d+$/u.test(label) && isBeyond(Number(label))];
      }
      default:
        throw new Unreadable(text, "in, notin, =, ==, !=, gt, lt");
    }
  }

  #exactValue(): string {
    const { kind, text } = this.#next;
    if (kind === "end" || text === ",") return "";
    this.#take();
    if (kind !== "identifier") throw new Unreadable(text, "identifier");
    if (!value.test(text)) throw new Unreadable(text, "a label value");
    return text;
  }

  #values(): Set<string> {
    const open = this.#take();
    if (open.text !== "(") throw new Unreadable(open.text, "'('", " ");
    const found = new Set<string>();
    for (;;) {
      found.add(this.#exactValueInList());
      const after = this.#take();
      if (after.text === ")") return found;
      if (after.text !== ",") throw new Unreadable(after.text, "',' or ')'");
    }
  }

  #exactValueInList(): string {
    return this.#next.text === ")" ? "" : this.#exactValue();
  }

  get #next(): Token {
    return this.#tokens[this.#at] ?? { kind: "end", text: "" };
  }

  #take(): Token {
    const token = this.#next;
    this.#at++;
    return token;
  }
}

class Unreadable extends Error {
  constructor(found: string, expected: string, comma = ", ") {
    super(`found '${found}'${comma}expected: ${expected}`);
  }
}

function inRequirement<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable) throw badRequest(`unable to parse requirement: ${error.message}`);
    throw error;
  }
}

const unexpected = (found: string, expected: string) => badRequest(`found '${found}', expected: ${expected}`);

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; ) {
    if (/\s/u.test(text[at] ?? "")) {
      at++;
      continue;
    }
    const operator = operators.find((one) => text.startsWith(one, at));
    const found = operator ?? /^[^\s!=(),<>]+/u.exec(text.slice(at))?.[0] ?? "";
    tokens.push({ kind: operator === undefined ? "identifier" : "operator", text: found });
    at += found.length;
  }
  return tokens;
}
