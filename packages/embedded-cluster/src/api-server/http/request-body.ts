import type { IncomingMessage } from "node:http";
import { parse as parseYaml } from "yaml";
import { ApiStatusError } from "../../api-status-error.ts";
import { isObject } from "../../json.ts";
import { badRequest, tooLarge, unsupportedMediaType } from "../refusals.ts";
import { goKindOf, goSyntaxError } from "../registry/go-json.ts";
import type { ApiRequest } from "./api-request.ts";
import { parseProtobuf, protobufType } from "./protobuf-body.ts";

/** As in the real server. */
export const bodyLimitBytes = 3 * 1024 * 1024;

/** Reads a request's body. Throws 413 past the limit, without reading further. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Not destroyed when reading stops: the refusal still has to be written to the same socket.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const part: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    bytes += part.length;
    if (bytes > bodyLimitBytes) {
      throw tooLarge(`limit is ${bodyLimitBytes}`);
    }
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}

/** The media type without its parameters. */
export function mediaTypeOf(request: IncomingMessage): string {
  return (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** Parses an object that was sent as JSON, YAML or protobuf. Throws 415 on other media types and 400 on what cannot be read. */
export function parseObject({ body, bytes, contentType }: ApiRequest, what = ""): unknown {
  if (contentType === "application/yaml") return parseText(body, parseYaml);
  if (contentType === "application/json" || contentType === "")
    return parseText(body, (text) => jsonObject(text, what));
  if (contentType === protobufType) return parseProtobuf(bytes);
  throw unsupportedMediaType(["application/json", "application/yaml", protobufType]);
}

/** The object that was sent, or undefined where nothing was. */
export function parseOptional(request: ApiRequest): unknown {
  return request.body.trim() === "" ? undefined : parseObject(request);
}

/** Reads JSON as the real server does, which looks for version and kind first; `what` is the kind that is expected. */
function jsonObject(text: string, what: string): unknown {
  const why = unreadable(text);
  if (why === undefined) return JSON.parse(text);
  const said = `couldn't get version/kind; json parse error: ${why}`;
  throw badRequest(
    what === "" ? said : `the object provided is unrecognized (must be of type ${what}): ${said} (${summaryOf(text)})`,
  );
}

function unreadable(text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return goSyntaxError(text);
  }
  if (isObject(value)) return undefined;
  return `json: cannot unmarshal ${goKindOf(value)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`;
}

const summaryLength = 30;

function summaryOf(text: string): string {
  if (text === "") return "<empty>";
  const bytes = Buffer.from(text);
  const part = bytes.subarray(0, summaryLength);
  const shown = text.startsWith("{") ? part.toString("utf8") : part.toString("hex");
  return bytes.length > summaryLength ? `${shown} ...` : shown;
}

/** Nothing that Kubernetes means is nested like this; deeper, reading and writing would exhaust the stack. */
const deepest = 500;

function parseText(text: string, parse: (text: string) => unknown): unknown {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    if (error instanceof ApiStatusError) throw error;
    throw badRequest(`couldn't read the request body: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (isDeeperThan(value, deepest)) throw badRequest(`the request body is nested more than ${deepest} levels deep`);
  return value;
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}
