import { badRequest, invalidOptions, invalidPatch, unsupportedValue } from "../refusals.ts";
import { rulesOf } from "../registry/kinds/kind-rules.ts";
import type { ResourceType } from "../resource-types.ts";
import type { ApiRequest } from "./api-request.ts";
import { doubledMembers } from "./doubled-members.ts";
import { optionsKind } from "./query.ts";
import type { Reply } from "./reply.ts";

/** What to do about members that the schema does not know: refuse, warn (the default), or say nothing. */
type Directive = "Strict" | "Warn" | "Ignore";

/** The members of a body that are about to be dropped, each as `unknown field "…"`, and what the caller wants of it. */
export interface Findings {
  readonly strict: boolean;
  readonly complaints: readonly string[];
  /** What the caller must know besides. */
  readonly notes: readonly string[];
}

export const nothingFound: Findings = { strict: false, complaints: [], notes: [] };

/** Looks for doubled members, and for unknown ones as far as they are known to be unknown. Throws 422 on an unsupported directive. */
export function findUnknown(type: ResourceType, request: ApiRequest, body: unknown): Findings {
  const directive = directiveOf(request);
  const { unknownFields } = rulesOf(type);
  const isJson = request.contentType === "application/json" || request.contentType === "";
  const doubled = directive === "Ignore" || !isJson ? [] : doubledMembers(request.body);
  const unknown = directive === "Ignore" ? [] : (unknownFields?.(body) ?? []);
  const strict = directive === "Strict";
  return {
    strict,
    complaints: [
      ...doubled.map((field) => `duplicate field ${JSON.stringify(field)}`),
      ...unknown.map((field) => `unknown field ${JSON.stringify(field)}`),
    ],
    notes: strict && unknownFields === undefined ? [unchecked(type)] : [],
  };
}

/** To take strictness as kept where nothing was looked at would be a lie. */
const unchecked = ({ kind }: ResourceType): string =>
  `the embedded cluster does not know the members of a ${kind}: a wrong one is stored, not refused`;

/** Refuses a body of a create or an update as the real server does. */
export function refuseUnknown(type: ResourceType, { strict, complaints }: Findings): void {
  if (!strict || complaints.length === 0) return;
  const { kind, version } = type;
  const list = complaints.join(", ");
  throw badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: strict decoding error: ${list}`);
}

/** Refuses what a patch has made of an object. */
export function refuseUnknownInPatched(patched: unknown, { strict, complaints }: Findings): void {
  if (!strict || complaints.length === 0) return;
  throw invalidPatch(JSON.stringify(patched), `strict decoding error: ${complaints.join(", ")}`);
}

/** Adds a warning for each finding. */
export function withWarnings(reply: Reply, { strict, complaints, notes }: Findings): Reply {
  const said = [...(strict ? [] : complaints), ...notes];
  if (said.length === 0) return reply;
  const warning = said.map((text) => `299 - ${JSON.stringify(text)}`);
  return { ...reply, headers: { ...reply.headers, warning } };
}

function directiveOf(request: ApiRequest): Directive {
  const asked = request.query.get("fieldValidation");
  if (asked === null || asked === "") return "Warn";
  if (asked === "Strict" || asked === "Warn" || asked === "Ignore") return asked;
  throw invalidOptions(optionsKind(request.method), [
    unsupportedValue("fieldValidation", asked, ["", "Ignore", "Strict", "Warn"]),
  ]);
}
