/** JSON as Go words its failures: the real server's messages carry them. */

/** What Go calls the kind of a JSON value. */
export function goKindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return typeof value;
}

/** What Go says of text that JSON.parse has refused. */
export function goSyntaxError(text: string): string {
  const at = firstOddCharacter(text);
  if (at === undefined) return "unexpected end of JSON input";
  return `invalid character ${goQuote(text[at] ?? "")} ${at === 0 || text.slice(0, at).trim() === "" ? "looking for beginning of value" : "in literal"}`;
}

/** Where V8 says that it stopped; undefined where the text only ended too early. */
function firstOddCharacter(text: string): number | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const said = error instanceof Error ? error.message : "";
    const at = /at position (\d+)/u.exec(said)?.[1];
    if (at === undefined) return said.includes("end of JSON input") || text.trim() === "" ? undefined : 0;
    return Number(at) >= text.length ? undefined : Number(at);
  }
}

function goQuote(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const isPlain = code >= 0x20 && code !== 0x7f && !(code >= 0x80 && code < 0xa0);
  return isPlain ? `'${character}'` : `'\\u${code.toString(16).padStart(4, "0")}'`;
}
