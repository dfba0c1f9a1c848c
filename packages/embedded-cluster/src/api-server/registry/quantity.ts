import { binaryUnits } from "../../quantity.ts";

/** What the real server says of an amount that it cannot read. */
export const quantityRule =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/**
 * An amount as the real server writes it back: whole binary amounts in their largest whole unit. Decimal and fractional
 * amounts are left as they were sent, which the real server would rewrite too.
 */
export function canonicalQuantity(amount: unknown): unknown {
  if (typeof amount === "number" && Number.isSafeInteger(amount)) return String(amount);
  if (typeof amount !== "string") return amount;
  const found = /^\+?(\d+)(Ki|Mi|Gi|Ti|Pi|Ei)$/u.exec(amount);
  if (found === null) return /^0+$/u.test(amount) ? "0" : amount;
  let value = BigInt(found[1] ?? "0");
  let unit = binaryUnits.indexOf(found[2] ?? "");
  if (value === 0n) return "0";
  while (value % 1024n === 0n && unit < binaryUnits.length - 1) {
    value /= 1024n;
    unit += 1;
  }
  return `${value}${binaryUnits[unit]}`;
}
