/** Why the service cannot start: one line for people, no stack. The process ends with exit code 2. */
export class StartFailure extends Error {
  constructor(line: string, cause?: unknown) {
    super(line, cause === undefined ? undefined : { cause });
    this.name = "StartFailure";
  }
}
