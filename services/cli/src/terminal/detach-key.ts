import { InvalidArgumentError } from "commander";

/** The byte of a key, as "ctrl-]", "^]" or "ctrl-a"; undefined for "none". */
export function detachKeyOf(text: string): number | undefined {
  if (text === "none") return undefined;
  const key = /^(?:ctrl-|\^)([a-z[\]\\^_@])$/i.exec(text)?.[1];
  if (key === undefined)
    throw new InvalidArgumentError('It must be "ctrl-" and a letter or one of []\\^_@, or "none".');
  return key.toUpperCase().charCodeAt(0) & 0x1f;
}
