import { randomBytes } from "node:crypto";

const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789";

/** Five characters that no word can be made of, as generateName appends. */
export function randomSuffix(): string {
  return Array.from(randomBytes(5), (byte) => suffixAlphabet[byte % suffixAlphabet.length]).join("");
}
