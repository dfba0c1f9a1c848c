/** A program that is to run. */
export interface ProgramStart {
  /** A path, or a name that is looked up in the PATH of `env`. */
  readonly command: string;
  readonly args: readonly string[];
  /** Absolute, links resolved; exists. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** What it finds as its own name. Undefined: the command. */
  readonly name?: string | undefined;
  readonly stdio: Stdio;
}

export type Stdio =
  /** Descriptors that become its 0, 1 and 2; undefined: /dev/null. The caller closes its own. */
  | readonly [stdin: number | undefined, stdout: number | undefined, stderr: number | undefined]
  /** All three are this terminal, by its path: opened within the new kernel session, it is what controls that from then on. */
  | { readonly terminal: string };

export type ExitStatus = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** A program that runs: the leader of a kernel session and process group of its own, which its pid names. */
export interface Program {
  readonly pid: number;
  readonly exited: Promise<ExitStatus>;
}

/** Starts programs. */
export interface Spawner {
  /**
   * Resolves once the kernel runs the program's own code. Rejects with an error whose `code` is the kernel's (ENOENT: no such program,
   * EACCES: not executable, …; `directoryRefused`: another or none stands at `cwd` by now), or with what `admit` throws, which is asked in the step in which the kernel is given the start; nothing
   * runs then.
   */
  spawn(start: ProgramStart, admit?: () => void): Promise<Program>;
}
