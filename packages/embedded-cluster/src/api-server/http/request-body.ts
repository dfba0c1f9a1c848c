import type { IncomingMessage } from "node:http";
import { parse as parseYaml } from "yaml";
import { badRequest, tooLarge, unsupportedMediaType } from "../refusals.ts";
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
      throw tooLarge(`Request entity too large: limit is ${bodyLimitBytes}`);
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
export function parseObject({ body, bytes, contentType }: ApiRequest): unknown {
  if (contentType === "application/yaml") return parseText(body, parseYaml);
  if (contentType === "application/json" || contentType === "") return parseText(body, JSON.parse);
  if (contentType === protobufType) return parseProtobuf(bytes);
  throw unsupportedMediaType(["application/json", "application/yaml"]);
}

/** The object that was sent, or undefined where nothing was. */
export function parseOptional(request: ApiRequest): unknown {
  return request.body.trim() === "" ? undefined : parseObject(request);
}

/** Parses JSON text. Throws 400 on what cannot be read. */
export function parseJson(text: string): unknown {
  return parseText(text, JSON.parse);
}

/** Nothing that Kubernetes means is nested like this; deeper, reading and writing would exhaust the stack. */
const deepest = 500;

function parseText(text: string, parse: (text: string) => unknown): unknown {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw badRequest(`couldn't read the request body: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (isDeeperThan(value, deepest)) throw badRequest(`the request body is nested more than ${deepest} levels deep`);
  return value;
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}
