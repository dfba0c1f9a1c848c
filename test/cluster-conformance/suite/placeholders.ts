import type { Json } from "./json.ts";
import { isObject } from "./json.ts";

const uuid = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;
const time = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;

/** Sentences of the server that carry versions. */
const versionsInText: readonly [RegExp, string][] = [
  [/too old resource version: \d+ \(\d+\)/g, "too old resource version: <rv> (<rv>)"],
  [/Too large resource version: \d+, current: \d+/g, "Too large resource version: <rv>, current: <rv>"],
  [/ResourceVersion in (the precondition|record) \(\d+\)/g, "ResourceVersion in $1 (<rv>)"],
];

/** Puts what differs from run to run out of sight: names, uids, versions, times, page tokens. One per case. */
export class Placeholders {
  readonly #texts: { readonly text: string; readonly placeholder: string }[] = [];
  readonly #uids = new Map<string, string>();
  readonly #namespace: string;

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** From now on this text is shown as the placeholder. */
  add(text: string, placeholder: string): void {
    this.#texts.push({ text, placeholder });
    this.#texts.sort((a, b) => b.text.length - a.text.length);
  }

  /** The value as it is compared. Members are sorted; managed fields, which the embedded cluster does not keep, are left out. */
  apply(value: Json, member = ""): Json {
    if (typeof value === "string") return this.#text(value, member);
    if (Array.isArray(value)) return value.map((item: Json) => this.apply(item, member));
    if (!isObject(value)) return value;
    const entries = Object.entries(value)
      .filter(([name]) => name !== "managedFields")
      .map(([name, item]): [string, Json] => [this.#plain(name), this.apply(item, name)])
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries);
  }

  #text(value: string, member: string): string {
    if (member === "resourceVersion" && /^[1-9]\d*$/.test(value)) return "<rv>";
    if (member === "continue" && value !== "") return "<token>";
    if (value === this.#namespace) return "<namespace>";
    return this.#plain(value);
  }

  #plain(value: string): string {
    let text = value;
    for (const known of this.#texts) text = text.replaceAll(known.text, known.placeholder);
    text = text.replaceAll(`namespaces/${this.#namespace}`, "namespaces/<namespace>");
    text = text.replaceAll(`/${this.#namespace}/`, "/<namespace>/");
    text = text.replaceAll(`.${this.#namespace}.svc`, ".<namespace>.svc");
    text = text.replaceAll(`"${this.#namespace}"`, '"<namespace>"');
    text = text.replaceAll(`namespace ${this.#namespace} `, "namespace <namespace> ");
    for (const [pattern, shown] of versionsInText) text = text.replace(pattern, shown);
    return text.replace(uuid, (found) => this.#uid(found)).replace(time, "<time>");
  }

  #uid(uid: string): string {
    const known = this.#uids.get(uid) ?? `<uid-${this.#uids.size + 1}>`;
    this.#uids.set(uid, known);
    return known;
  }
}
