import type { IncomingMessage } from "node:http";
import { ApiStatusError, type StatusBody } from "../api-status-error.ts";
import { isObject, type JsonObject, objectIn, stringIn } from "../json.ts";
import type { KubeObject } from "../resource-api.ts";

/** More than the largest list of a cluster that one machine runs. */
const maxAnswerCharacters = 512 * 1024 * 1024;

/** Reads a whole answer as a JSON object. Throws ApiStatusError for a refusal. */
export async function readAnswer(answer: IncomingMessage): Promise<JsonObject> {
  answer.setEncoding("utf8");
  const parts: string[] = [];
  let length = 0;
  for await (const part of answer) {
    length += part.length;
    if (length > maxAnswerCharacters) {
      answer.destroy();
      throw new Error(`An answer of the API server is longer than ${maxAnswerCharacters} characters; it was not read.`);
    }
    parts.push(part);
  }
  const code = answer.statusCode ?? 0;
  const text = parts.join("");
  const body = parseOrUndefined(text);
  if (code >= 200 && code < 300 && isObject(body)) return body;
  throw new ApiStatusError(statusOf(body, code, text));
}

/** The refusal that a body tells of; what is no `Status` (a proxy's page, say) is quoted. */
export function statusOf(body: unknown, code: number, text: string): StatusBody {
  if (isStatus(body)) return { ...body, code: body.code ?? code };
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `the server answered ${code} and no Status: ${text.slice(0, 300)}`,
    code,
  };
}

function isStatus(body: unknown): body is StatusBody {
  return isObject(body) && body.kind === "Status" && body.status === "Failure";
}

/** The object, where it has what every object has. An item of a list may leave its kind to the list: `otherwise` gives it. */
export function objectOf(
  value: unknown,
  otherwise?: { readonly apiVersion: string; readonly kind: string },
): KubeObject {
  const metadata = objectIn(value, "metadata");
  const name = stringIn(metadata, "name");
  if (!isObject(value) || name === undefined) throw new Error("The API server sent an object without a name.");
  return {
    ...value,
    apiVersion: stringIn(value, "apiVersion") ?? otherwise?.apiVersion ?? "",
    kind: stringIn(value, "kind") ?? otherwise?.kind ?? "",
    metadata: { ...metadata, name },
  };
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON: quoted by statusOf
  }
}
