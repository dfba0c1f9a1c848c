import { type ParseArgsConfig, parseArgs } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>["values"];

/** Says in one line what is wrong with a command line, and ends the process with 2: nothing was started. */
export function refuseFlags(task: string, why: string): never {
  console.error(`npm run ${task}: ${why}; nothing was started`);
  process.exit(2);
}

/** Reads the flags of one `npm run` task. An unknown one, a word too many or a value that is missing ends the process. */
export function readFlags<T extends Options>(task: string, options: T): Values<T> {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (!(error instanceof Error) || !code.startsWith("ERR_PARSE_ARGS_")) throw error;
    const first = error.message.split(/\.?\n|\. To specify/u)[0]?.trim() ?? "";
    const known = Object.keys(options).map((name) => `--${name}`);
    // A value that begins with a dash is taken for a flag.
    const dashed = /ambiguous/u.test(first) ? " (a value that begins with a dash is written --flag=-value)" : "";
    return refuseFlags(task, `${first}${dashed}; there are ${known.join(", ")}`);
  }
}

/** A whole number within bounds; anything else, `NaN` and negative ones among them, ends the process. */
export function wholeFlag(task: string, flag: string, text: string, least: number, most = 2 ** 31 - 1): number {
  const value = /^\d{1,15}$/u.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  return refuseFlags(task, `--${flag} must be a whole number from ${least} to ${most}; it is ${JSON.stringify(text)}`);
}
