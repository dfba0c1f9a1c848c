import { epochMax } from "@holdfast/contract";
import { InvalidArgumentError } from "commander";

/** A holder's number as it is typed: whole and decimal, as the API takes it. */
export function holderEpochOf(text: string): bigint {
  if (/^(0|[1-9]\d{0,15})$/.test(text) && BigInt(text) <= BigInt(epochMax)) return BigInt(text);
  throw new InvalidArgumentError(`It must be a whole number from 0 to ${epochMax}.`);
}
