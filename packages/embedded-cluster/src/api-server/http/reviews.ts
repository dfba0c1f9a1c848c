import { isObject, stringIn } from "../../json.ts";
import { badRequest } from "../refusals.ts";
import { jsonReply, type Reply } from "./reply.ts";
import type { ReviewKind } from "./route.ts";

/** The one user there is. */
const user = {
  username: "holdfast-embedded",
  uid: "holdfast-embedded",
  groups: ["system:masters", "system:authenticated"],
};

/** Answers TokenReview and the access reviews: the one token is known, and its user may do everything. */
export function answerReview(kind: ReviewKind, body: unknown, isToken: (token: string) => boolean): Reply {
  if (!isObject(body)) throw badRequest("the request body is not an object");
  const { spec } = body;
  const apiVersion = kind === "TokenReview" ? "authentication.k8s.io/v1" : "authorization.k8s.io/v1";
  const status =
    kind === "TokenReview" ? tokenStatus(stringIn(spec, "token") ?? "", isToken) : accessStatus(kind, spec);
  return jsonReply(201, { kind, apiVersion, metadata: { creationTimestamp: null }, spec, status });
}

function tokenStatus(token: string, isToken: (token: string) => boolean): unknown {
  return isToken(token) ? { authenticated: true, user } : { user: {}, error: "invalid bearer token" };
}

function accessStatus(kind: ReviewKind, spec: unknown): unknown {
  const allowed = kind === "SelfSubjectAccessReview" || stringIn(spec, "user") === user.username;
  return allowed ? { allowed, reason: "the embedded cluster has one user" } : { allowed };
}
