import { isObject } from "../../json.ts";
import { badRequest } from "../refusals.ts";
import { goSyntaxError } from "./go-json.ts";

/** Where a paged list goes on: the version it reads at and the last key that was given. */
export interface ContinueToken {
  /** -1: whatever stands now, which is not what the first page was of. */
  readonly rv: number;
  readonly namespace: string;
  readonly name: string;
}

export function encodeContinueToken(token: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: "v1", ...token })).toString("base64url");
}

/** Throws 400 on a token that this server did not make. */
export function decodeContinueToken(text: string): ContinueToken {
  const bytes = Buffer.from(text, "base64url");
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    // Go looks at bytes, not at characters.
    throw badRequest(`invalid continue token: continue key is not valid: ${goSyntaxError(bytes.toString("latin1"))}`);
  }
  if (isObject(value) && value.v === "v1") {
    const { rv, namespace, name } = value;
    if (
      typeof rv === "number" &&
      Number.isSafeInteger(rv) &&
      typeof namespace === "string" &&
      typeof name === "string"
    ) {
      return { rv, namespace, name };
    }
  }
  throw badRequest("invalid continue token: continue key is not valid: unrecognized encoded continue token");
}
