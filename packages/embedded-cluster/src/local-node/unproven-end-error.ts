/** A container's command ended, and whether everything else of it has is not known: nothing may take its place. */
export class UnprovenEndError extends Error {
  constructor(container: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`whether every process of container ${container} has ended is not known: ${why}`, { cause });
    this.name = "UnprovenEndError";
  }
}
