import { boundToken, openBoundToken } from "./bound-token.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";

/** The place of an event in the chronicle of this process and workspace. */
export function cursorOf(sequence: number, under: object): string {
  return boundToken(String(sequence), under);
}

/** The place of a cursor; undefined for none; `elsewhere` for one of another process or workspace. INVALID_REQUEST for what is none. */
export function placeOfCursor(cursor: string, under: object): number | "elsewhere" | undefined {
  if (cursor === "") return undefined;
  const opened = openBoundToken(cursor, under);
  if (opened.t === "elsewhere") return "elsewhere";
  const sequence = opened.t === "value" && /^\d{1,15}$/.test(opened.value) ? Number(opened.value) : undefined;
  if (sequence !== undefined) return sequence;
  throw invalidRequest([{ field: "cursor", description: "is not a cursor of this service; begin without it" }]);
}
