import { ApiStatusError, type StatusCause, type StatusDetails } from "../api-status-error.ts";
import type { ResourceType } from "./resource-types.ts";

/** The refusals of a kube-apiserver, worded as the real one words them. */

function refusal(code: number, reason: string, message: string, details?: StatusDetails): ApiStatusError {
  return new ApiStatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  });
}

function detailsOf(type: ResourceType, name: string): StatusDetails {
  return { ...nameIn(name), ...(type.group === "" ? {} : { group: type.group }), kind: type.plural };
}

/** An empty name is left out, as Go leaves it out. */
const nameIn = (name: string): { name?: string } => (name === "" ? {} : { name });

/** `sandboxes.agents.x-k8s.io`, or `pods` for the core group. */
export function qualified(type: ResourceType): string {
  return type.group === "" ? type.plural : `${type.plural}.${type.group}`;
}

function qualifiedKind(type: ResourceType): string {
  return type.group === "" ? type.kind : `${type.kind}.${type.group}`;
}

export const badRequest = (message: string): ApiStatusError => refusal(400, "BadRequest", message);

interface KindInVersion {
  readonly kind: string;
  readonly version: string;
}

/** A body that cannot be read as the kind that it should be; in a patch, what it makes of the object cannot. */
export class Undecodable extends ApiStatusError {
  readonly why: string;

  /** `sent` is what the body says of itself. */
  constructor(wanted: KindInVersion, why: string, sent = wanted) {
    const message = `${sent.kind} in version "${sent.version}" cannot be handled as a ${wanted.kind}: ${why}`;
    super(badRequest(message).status);
    this.why = why;
  }
}

export const unauthorized = (): ApiStatusError => refusal(401, "Unauthorized", "Unauthorized");

export const forbidden = (type: ResourceType, name: string, why: string): ApiStatusError =>
  refusal(403, "Forbidden", `${qualified(type)} "${name}" is forbidden: ${why}`, detailsOf(type, name));

/** Whoever asks to be someone else must not be served as itself. */
export const impersonationNotServed = (): ApiStatusError =>
  refusal(
    403,
    "Forbidden",
    "impersonation is not served by the embedded cluster, which knows one user; nothing was done",
  );

export const notFound = (type: ResourceType, name: string): ApiStatusError =>
  refusal(404, "NotFound", `${qualified(type)} "${name}" not found`, detailsOf(type, name));

/** For a path that this server does not serve; `what` names it. */
export const notServed = (what: string): ApiStatusError =>
  refusal(
    404,
    "NotFound",
    `the server could not find the requested resource: ${what} is not served by the embedded cluster`,
    {},
  );

/** For what is not there and is no object of Kubernetes. */
export const notThere = (message: string): ApiStatusError => refusal(404, "NotFound", message, {});

/** As notServed, but answered over HTTP as a page of text. */
export class NotServedPage extends ApiStatusError {
  constructor(what: string) {
    super(notServed(what).status);
  }

  get page(): string {
    return `404 page not found: ${this.message}\n`;
  }
}

export const methodNotAllowed = (): ApiStatusError =>
  refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {});

export const notAcceptable = (): ApiStatusError =>
  refusal(406, "NotAcceptable", "406: Not Acceptable\n\nAvailable representations: application/json", {});

/** The name is still taken by one that is on its way out. */
export const stillTerminating = (type: ResourceType, name: string): ApiStatusError =>
  refusal(
    409,
    "AlreadyExists",
    `object is being deleted: ${qualified(type)} "${name}" already exists`,
    detailsOf(type, name),
  );

export const alreadyExists = (type: ResourceType, name: string): ApiStatusError =>
  refusal(409, "AlreadyExists", `${qualified(type)} "${name}" already exists`, detailsOf(type, name));

export const conflict = (type: ResourceType, name: string, why: string): ApiStatusError =>
  refusal(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${qualified(type)} "${name}": ${why}`,
    detailsOf(type, name),
  );

export const staleResourceVersion = (type: ResourceType, name: string): ApiStatusError =>
  conflict(type, name, "the object has been modified; please apply your changes to the latest version and try again");

/** An update of a custom resource that does not say of which version it is; here the real server names the plural. */
export const versionRequired = (type: ResourceType, name: string): ApiStatusError => {
  const message = "Invalid value: 0: must be specified for an update";
  const causes = [{ reason: "FieldValueInvalid", message, field: "metadata.resourceVersion" }];
  const text = `${qualified(type)} "${name}" is invalid: metadata.resourceVersion: ${message}`;
  return refusal(422, "Invalid", text, { ...detailsOf(type, name), causes });
};

/** A body that is another kind than its path: of a custom resource the real server names the kind that was sent. */
export const otherKind = (type: ResourceType, kind: string, name: string): ApiStatusError => {
  const message = `Invalid value: ${JSON.stringify(kind)}: must be ${type.kind}`;
  return refusal(422, "Invalid", `${kind}.${type.group} "${name}" is invalid: kind: ${message}`, {
    ...nameIn(name),
    group: type.group,
    kind,
    causes: [{ reason: "FieldValueInvalid", message, field: "kind" }],
  });
};

/** What the real server answers where its code has not thought of a refusal: 500 without a reason. */
export const unforeseen = (message: string): ApiStatusError =>
  new ApiStatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, code: 500 });

/** A namespace that is on its way out takes nothing new. */
export const namespaceTerminating = (type: ResourceType, name: string, namespace: string): ApiStatusError => {
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  const causes = [{ reason: "NamespaceTerminating", message, field: "metadata.namespace" }];
  const text = `${qualified(type)} "${name}" is forbidden: ${why}`;
  return refusal(403, "Forbidden", text, { ...detailsOf(type, name), causes });
};

/** An update that names another uid: here the real server shows its store's own words. */
export const otherUid = (type: ResourceType, namespace: string, name: string, wanted: string, present: string) => {
  const place = [...(type.group === "" ? [] : [type.custom ? type.group : ""]), type.plural, namespace, name];
  const key = `/registry/${place.filter((part) => part !== "").join("/")}`;
  const why = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${present}`;
  return conflict(
    type,
    name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`,
  );
};

/** A delete precondition that does not hold; the real server names the kind here, not the plural. */
export const preconditionFailed = (type: ResourceType, name: string, why: string): ApiStatusError =>
  refusal(409, "Conflict", `Operation cannot be fulfilled on ${qualifiedKind(type)} "${name}": ${why}`, {
    name,
    ...(type.group === "" ? {} : { group: type.group }),
    kind: type.kind,
  });

/** A pod that may not be bound, or not again. */
export const bindingRefused = (name: string, why: string): ApiStatusError =>
  refusal(409, "Conflict", `Operation cannot be fulfilled on pods/binding ${JSON.stringify(name)}: ${why}`, {
    name,
    kind: "pods/binding",
  });

/** A Binding for another pod of the name: here the real server shows its store's own words. */
export const bindingPrecondition = (
  namespace: string,
  name: string,
  member: "UID" | "ResourceVersion",
  wanted: string,
  present: string,
): ApiStatusError =>
  refusal(
    409,
    "Conflict",
    `Operation cannot be fulfilled on pods ${JSON.stringify(name)}: StorageError: invalid object, Code: 4, Key: /registry/pods/${namespace}/${name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ${member} in precondition: ${wanted}, ${member} in object meta: ${present}`,
    { name, kind: "pods" },
  );

/** A Binding that names no node: the real server answers 500 without a reason. */
export const invalidBinding = (why: string): ApiStatusError =>
  new ApiStatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: why, code: 500 });

/** A list page or an exact version that has been compacted. */
export const expired = (message: string): ApiStatusError => refusal(410, "Expired", message);

/** A list page that has been compacted, with the way to read the rest of what there is now. */
export const expiredContinue = (token: string): ApiStatusError =>
  new ApiStatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: { continue: token },
    status: "Failure",
    message:
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    reason: "Expired",
    code: 410,
  });

export const tooOldResourceVersion = (wanted: number, oldest: number): ApiStatusError =>
  expired(`too old resource version: ${wanted} (${oldest})`);

export const tooLarge = (why: string): ApiStatusError =>
  refusal(413, "RequestEntityTooLarge", `Request entity too large: ${why}`);

export const unsupportedMediaType = (accepted: readonly string[]): ApiStatusError =>
  refusal(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
  );

/** A JSON Patch that does not apply, a failed `test` included: the real server does not say which operation failed. */
export const patchDoesNotApply = (): ApiStatusError =>
  refusal(422, "Invalid", "the server rejected our request due to an error in our request", {});

export const invalid = (type: ResourceType, name: string, causes: readonly StatusCause[]): ApiStatusError => {
  const parts = [...new Set(causes.map((cause) => `${cause.field}: ${cause.message}`))];
  const text = parts.length === 1 ? parts[0] : `[${parts.join(", ")}]`;
  return refusal(422, "Invalid", `${qualifiedKind(type)} "${name}" is invalid: ${text}`, {
    ...nameIn(name),
    ...(type.group === "" ? {} : { group: type.group }),
    kind: type.kind,
    causes,
  });
};

export const internalError = (message: string): ApiStatusError =>
  refusal(500, "InternalError", `Internal error occurred: ${message}`, { causes: [{ message }] });

/** What a patch has made of an object cannot be taken. */
export const invalidPatch = (patched: string, why: string): ApiStatusError => {
  const message = `Invalid value: ${JSON.stringify(patched)}: ${why}`;
  const causes = [{ reason: "FieldValueInvalid", message, field: "patch" }];
  return refusal(422, "Invalid", ` "" is invalid: patch: ${message}`, { causes });
};

/** A review that asks nothing: the real server names no kind here. */
export const invalidReview = (group: string, causes: readonly StatusCause[]): ApiStatusError => {
  const parts = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const text = parts.length === 1 ? parts[0] : `[${parts.join(", ")}]`;
  return refusal(422, "Invalid", `.${group} "" is invalid: ${text}`, { group, causes });
};

export const protobufNotServed = (what: string): ApiStatusError =>
  refusal(
    415,
    "UnsupportedMediaType",
    `the embedded cluster reads no protobuf of ${what}; nothing was changed. Send it as JSON or YAML (kubectl: create -f)`,
  );

/** A patch type that the real server knows for built-in kinds, and this one does not. */
export const strategicMergeNotServed = (accepted: readonly string[]): ApiStatusError =>
  refusal(
    415,
    "UnsupportedMediaType",
    `strategic merge patch is not served by the embedded cluster; nothing was changed. Use --type=merge or --type=json: accepted media types include: ${accepted.join(", ")}`,
  );

/** The real server's priority and fairness refuses so; how many lists there may be is this server's own bound. */
export const tooManyLargeLists = (most: number): ApiStatusError =>
  refusal(
    429,
    "TooManyRequests",
    `the embedded cluster writes at most ${most} large lists at once; nothing was read. Ask in pages (limit), or again in a second`,
    { retryAfterSeconds: 1 },
  );

/** A version that this server has not reached, e.g. because its data directory was replaced by an older one. */
export const tooLargeResourceVersion = (wanted: number, current: number): ApiStatusError =>
  refusal(504, "Timeout", `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });

/** Options that cannot be taken, one cause for each. */
export const invalidOptions = (kind: string, causes: readonly StatusCause[]): ApiStatusError => {
  const parts = [...new Set(causes.map((cause) => `${cause.field}: ${cause.message}`))];
  const text = parts.length === 1 ? parts[0] : `[${parts.join(", ")}]`;
  const details = { group: "meta.k8s.io", kind, causes };
  return refusal(422, "Invalid", `${kind}.meta.k8s.io "" is invalid: ${text}`, details);
};

export const unsupportedValue = (field: string, value: unknown, supported: readonly string[]): StatusCause => {
  const list = supported.map((item) => JSON.stringify(item)).join(", ");
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${list}`;
  return { reason: "FieldValueNotSupported", message, field };
};

export const forbiddenField = (field: string, why: string): StatusCause => ({
  reason: "FieldValueForbidden",
  message: `Forbidden: ${why}`,
  field,
});
