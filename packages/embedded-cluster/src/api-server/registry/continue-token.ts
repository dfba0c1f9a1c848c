import { isObject } from "../../json.ts";
import { badRequest } from "../refusals.ts";

/** Where a paged list goes on: the version it reads at and the last key that was given. */
export interface ContinueToken {
  readonly rv: number;
  readonly namespace: string;
  readonly name: string;
}

export function encodeContinueToken(token: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: "v1", ...token })).toString("base64url");
}

/** Throws 400 on a token that this server did not make. */
export function decodeContinueToken(text: string): ContinueToken {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    value = undefined;
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
  throw badRequest("continue key is not valid");
}
