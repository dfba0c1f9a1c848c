import type { StatusCause } from "../../api-status-error.ts";
import { isObject, listIn, objectIn, stringIn } from "../../json.ts";
import { badRequest, invalidReview } from "../refusals.ts";
import { rfc3339 } from "../registry/timestamp.ts";
import { jsonReply, type Reply } from "./reply.ts";
import type { ReviewKindSpec } from "./review-kinds.ts";

/** The one user there is. */
const user = {
  username: "holdfast-embedded",
  uid: "holdfast-embedded",
  groups: ["system:masters", "system:authenticated"],
};

/** Answers token and access reviews: the one token is known, and its user may do everything. */
export function answerReview(
  { group, kind }: ReviewKindSpec,
  body: unknown,
  isToken: (token: string) => boolean,
  now: Date,
): Reply {
  if (!isObject(body)) throw badRequest("the request body is not an object");
  const apiVersion = `${group}/v1`;
  if ((body.kind ?? kind) !== kind || (body.apiVersion ?? apiVersion) !== apiVersion) {
    throw badRequest(`the object provided is unrecognized (must be of type ${kind})`);
  }
  const spec = isObject(body.spec) ? body.spec : {};
  const answer = (status: unknown) => jsonReply(201, { kind, apiVersion, metadata: {}, spec, status });
  switch (kind) {
    case "TokenReview":
      if ((stringIn(spec, "token") ?? "") === "")
        throw badRequest(`token is required for TokenReview in authentication`);
      return answer(tokenStatus(stringIn(spec, "token") ?? "", isToken));
    case "SelfSubjectReview": {
      const metadata = { creationTimestamp: rfc3339(now) };
      return jsonReply(201, { kind, apiVersion, metadata, status: { userInfo: user } });
    }
    case "SelfSubjectRulesReview":
      return answer(everyRule);
    case "SelfSubjectAccessReview":
      assertOneAttribute(group, spec, []);
      return answer(allowed);
    case "SubjectAccessReview": {
      assertOneAttribute(group, spec, someone(spec));
      const isMaster = listIn(spec, "groups").includes("system:masters");
      return answer(stringIn(spec, "user") === user.username || isMaster ? allowed : { allowed: false });
    }
  }
}

const allowed = { allowed: true, reason: "the embedded cluster has one user" };

const everyRule = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  incomplete: false,
};

function tokenStatus(token: string, isToken: (token: string) => boolean): unknown {
  return isToken(token) ? { authenticated: true, user } : { user: {}, error: "invalid bearer token" };
}

function someone(spec: unknown): StatusCause[] {
  if ((stringIn(spec, "user") ?? "") !== "" || listIn(spec, "groups").length > 0) return [];
  const message = 'Invalid value: "": at least one of user or group must be specified';
  return [{ reason: "FieldValueInvalid", message, field: "spec.user" }];
}

function assertOneAttribute(group: string, spec: unknown, more: readonly StatusCause[]): void {
  const given = [objectIn(spec, "resourceAttributes"), objectIn(spec, "nonResourceAttributes")];
  const message = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
  const causes =
    given.filter((member) => member !== undefined).length === 1
      ? more
      : [{ reason: "FieldValueInvalid", message, field: "spec.resourceAttributes" }, ...more];
  if (causes.length > 0) throw invalidReview(group, causes);
}
