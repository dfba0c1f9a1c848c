import { isObject, type JsonObject } from "../json.ts";
import type { FaultAction, FaultMatch, FaultRule, FaultVerb, Loss } from "./fault-rule.ts";
import type { NodeRule, WatchRule } from "./faults.ts";
import type { PodMatch, PodPlace } from "./node-faults.ts";

/** What can be asked of the knobs as JSON: a rule that stands, or something that happens once. */
export type AskedFault =
  | { readonly t: "rule"; readonly rule: FaultRule }
  | { readonly t: "watches"; readonly rule: WatchRule }
  | { readonly t: "node"; readonly rule: NodeRule }
  | { readonly t: "dropWatches"; readonly match: FaultMatch }
  | { readonly t: "evict" | "killContainer" | "cutAddress"; readonly pod: PodPlace; readonly text: string | undefined };

/** What was asked cannot be read; nothing was changed. */
export class FaultSyntaxError extends Error {
  constructor(what: string) {
    super(`${what} Nothing was changed.`);
    this.name = "FaultSyntaxError";
  }
}

const verbs: readonly FaultVerb[] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/** Who calls a cluster that runs by itself: a rule about anybody else would never be met. */
const callers: readonly string[] = ["client", "controller", "node"];
const losses: readonly Loss[] = ["cut", "silence", "timeout"];
const nodeRules: readonly NodeRule["node"][] = ["holdScheduling", "delayStart", "failImagePull"];
const once = ["evict", "killContainer", "cutAddress"] as const;

/** Reads what was asked. Throws FaultSyntaxError, naming what cannot be read; a member that is not known is refused. */
export function parseFault(value: unknown): AskedFault {
  const asked = objectOf(value, "The fault");
  if ("action" in asked) {
    only(asked, ["match", "action", "after", "count"], "A rule");
    const rule = {
      match: matchOf(asked.match, "match"),
      action: actionOf(asked.action),
      ...optional("after", countOf(asked.after, "after")),
      ...optional("count", countOf(asked.count, "count")),
    };
    return { t: "rule", rule };
  }
  if ("watches" in asked) {
    only(asked, ["watches", "delayMs"], "A rule of watches");
    return {
      t: "watches",
      rule: { watches: matchOf(asked.watches, "watches"), delayMs: countOf(asked.delayMs, "delayMs") },
    };
  }
  if ("node" in asked) return { t: "node", rule: nodeRuleOf(asked) };
  if ("dropWatches" in asked) {
    only(asked, ["dropWatches"], "dropWatches");
    return { t: "dropWatches", match: matchOf(asked.dropWatches, "dropWatches") };
  }
  const [t] = once.filter((name) => name in asked);
  if (t !== undefined) {
    only(asked, [t, "container", "message"], t);
    const pod = placeOf(asked[t], t);
    return { t, pod, text: textOf(t === "evict" ? asked.message : asked.container, "container or message") };
  }
  throw new FaultSyntaxError(
    `A fault has one of the members action, watches, node, dropWatches, ${once.join(", ")}; found ${names(asked)}.`,
  );
}

function actionOf(value: unknown): FaultAction {
  const action = objectOf(value, "action");
  switch (action.t) {
    case "fail": {
      only(action, ["t", "code", "reason", "message", "retryAfterSeconds"], "fail");
      const code = countOf(action.code, "action.code");
      if (code === undefined || code < 400 || code > 599)
        throw new FaultSyntaxError("action.code is a number from 400 to 599.");
      return {
        t: "fail",
        code,
        ...optional("reason", textOf(action.reason, "action.reason")),
        ...optional("message", textOf(action.message, "action.message")),
        ...optional("retryAfterSeconds", countOf(action.retryAfterSeconds, "action.retryAfterSeconds")),
      };
    }
    case "delay":
      only(action, ["t", "ms"], "delay");
      return { t: "delay", ms: needed(countOf(action.ms, "action.ms"), "action.ms") };
    case "hold":
      only(action, ["t"], "hold");
      return { t: "hold" };
    case "dropUnapplied":
    case "applyThenDrop":
      only(action, ["t", "loss"], action.t);
      return { t: action.t, ...optional("loss", lossOf(action.loss)) };
    case "applyLate":
      only(action, ["t", "ms", "loss"], "applyLate");
      return {
        t: "applyLate",
        ms: needed(countOf(action.ms, "action.ms"), "action.ms"),
        ...optional("loss", lossOf(action.loss)),
      };
    default:
      throw new FaultSyntaxError(
        `action.t is one of fail, delay, hold, dropUnapplied, applyThenDrop, applyLate; found ${JSON.stringify(action.t)}.`,
      );
  }
}

function matchOf(value: unknown, where: string): FaultMatch {
  const match = objectOf(value ?? {}, where);
  only(match, ["by", "verb", "resource", "namespace", "name", "subresource"], where);
  const verb = listOf(match.verb, `${where}.verb`);
  for (const name of typeof verb === "string" ? [verb] : (verb ?? [])) {
    if (!isOneOf(verbs, name))
      throw new FaultSyntaxError(`${where}.verb ${JSON.stringify(name)} is none of ${verbs.join(", ")}.`);
  }
  const by = textOf(match.by, `${where}.by`);
  if (by !== undefined && !isOneOf(callers, by)) {
    throw new FaultSyntaxError(`${where}.by ${JSON.stringify(by)} is none of ${callers.join(", ")}.`);
  }
  const texts = ["by", "namespace", "name", "subresource"].map(
    (member) => [member, textOf(match[member], `${where}.${member}`)] as const,
  );
  return {
    ...Object.fromEntries(texts.filter(([, text]) => text !== undefined)),
    ...optional("resource", listOf(match.resource, `${where}.resource`)),
    ...optional("verb", verb as FaultVerb | FaultVerb[] | undefined),
  };
}

function nodeRuleOf(asked: JsonObject): NodeRule {
  only(asked, ["node", "pods", "ms", "message"], "A rule of the node");
  const { node } = asked;
  if (typeof node !== "string" || !isOneOf(nodeRules, node)) {
    throw new FaultSyntaxError(`node is one of ${nodeRules.join(", ")}; found ${JSON.stringify(node)}.`);
  }
  const ms = countOf(asked.ms, "ms");
  return {
    node,
    pods: podsOf(asked.pods),
    ...optional("ms", node === "delayStart" ? needed(ms, "ms") : ms),
    ...optional("message", textOf(asked.message, "message")),
  };
}

function podsOf(value: unknown): PodMatch {
  const match = objectOf(value ?? {}, "pods");
  only(match, ["namespace", "name", "uid"], "pods");
  return {
    ...optional("namespace", textOf(match.namespace, "pods.namespace")),
    ...optional("name", textOf(match.name, "pods.name")),
    ...optional("uid", textOf(match.uid, "pods.uid")),
  };
}

function placeOf(value: unknown, where: string): PodPlace {
  const place = objectOf(value, where);
  only(place, ["namespace", "name"], where);
  const name = textOf(place.name, `${where}.name`);
  return {
    name: needed(name, `${where}.name`),
    ...optional("namespace", textOf(place.namespace, `${where}.namespace`)),
  };
}

function objectOf(value: unknown, where: string): JsonObject {
  if (!isObject(value)) throw new FaultSyntaxError(`${where} must be an object.`);
  return value;
}

function textOf(value: unknown, where: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new FaultSyntaxError(`${where} must be a string.`);
  return value;
}

function listOf(value: unknown, where: string): string | string[] | undefined {
  if (!Array.isArray(value)) return textOf(value, where);
  return value.map((item) => needed(textOf(item, where), where));
}

function countOf(value: unknown, where: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw new FaultSyntaxError(`${where} must be a whole number, not below 0.`);
  }
  return value;
}

function lossOf(value: unknown): Loss | undefined {
  const loss = textOf(value, "action.loss");
  if (loss === undefined || isOneOf(losses, loss)) return loss;
  throw new FaultSyntaxError(`action.loss is one of ${losses.join(", ")}; found ${JSON.stringify(loss)}.`);
}

function isOneOf<T extends string>(known: readonly T[], text: string): text is T {
  return known.some((one) => one === text);
}

function needed<T>(value: T | undefined, where: string): T {
  if (value === undefined) throw new FaultSyntaxError(`${where} is missing.`);
  return value;
}

function only(value: JsonObject, members: readonly string[], what: string): void {
  const unknown = Object.keys(value).filter((member) => !members.includes(member));
  if (unknown.length > 0)
    throw new FaultSyntaxError(`${what} has the members ${members.join(", ")}; found ${unknown.join(", ")}.`);
}

const names = (value: JsonObject): string => Object.keys(value).join(", ") || "none";

function optional<K extends string, T>(key: K, value: T | undefined): { readonly [key in K]?: T } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [key in K]?: T });
}
