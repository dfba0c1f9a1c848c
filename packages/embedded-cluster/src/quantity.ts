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

/** The suffixes of binary amounts, by their power of 1024. */
export const binaryUnits = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** A Kubernetes quantity as a number; NaN where it is none. */
export function amountOf(amount: unknown): number {
  const text = typeof amount === "number" ? String(amount) : typeof amount === "string" ? amount : "";
  const found = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/u.exec(text);
  if (found === null) return Number.NaN;
  const [, number, exponent, suffix = ""] = found;
  const factor = suffix.endsWith("i") ? 1024 ** binaryUnits.indexOf(suffix) : (decimal[suffix] ?? Number.NaN);
  return Number(number) * factor * 10 ** Number(exponent ?? 0);
}
