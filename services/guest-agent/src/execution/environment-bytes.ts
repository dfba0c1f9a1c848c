/** What an argument, or an entry of an environment, costs beside its bytes. */
export const argCostBytes = 24;

/** What a start holds beside its arguments until it is settled, which may be long where starts wait for each other. */
export function environmentBytesOf(env: Readonly<Record<string, string>>): number {
  return Object.entries(env).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value) + argCostBytes,
    0,
  );
}
