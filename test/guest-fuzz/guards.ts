/** A guard of the agent, and how its source reads without it. `find` must stand in the file exactly once. */
export interface Guard {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** The guards that the fuzzer must miss when they are gone. */
export const guards: readonly Guard[] = [
  {
    name: "decoder: bytes of a message that spans reads",
    file: "packages/guest-link/src/frame-decoder.ts",
    find: "    this.#partialFill = fill;",
    replace: "    this.#partialFill = fill - 1;",
  },
  {
    name: "handler: the end of each piece of output",
    file: "services/guest-agent/src/execution/output-follower.ts",
    find: "    this.#stream.sendData(bytes);",
    replace: "    this.#stream.sendData(bytes.subarray(0, 4_000));",
  },
  {
    name: "handler: an answer too long for the link",
    file: "packages/guest-link/src/status.ts",
    find: "const quotedMaxBytes = 4 * 1024;",
    replace: "const quotedMaxBytes = 2 ** 32;",
  },
];
