/** What the real server says of an amount that it cannot read. */
export const quantityRule =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const decimal: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
};

/** An amount as a number; NaN where it is none. */
export function amountOf(amount: unknown): number {
  const text = typeof amount === "number" ? String(amount) : typeof amount === "string" ? amount : "";
  const found = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/u.exec(text);
  if (found === null) return Number.NaN;
  const [, number, exponent, suffix = ""] = found;
  const factor = suffix.endsWith("i") ? 1024 ** binary.indexOf(suffix) : (decimal[suffix] ?? Number.NaN);
  return Number(number) * factor * 10 ** Number(exponent ?? 0);
}

const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

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
  let unit = binary.indexOf(found[2] ?? "");
  if (value === 0n) return "0";
  while (value % 1024n === 0n && unit < binary.length - 1) {
    value /= 1024n;
    unit += 1;
  }
  return `${value}${binary[unit]}`;
}
