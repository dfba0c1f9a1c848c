/** A name as a terminal may show it: control characters and bytes that are no text are escaped, never sent. */
export function printable(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\u2028\u2029\ufffd]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}
