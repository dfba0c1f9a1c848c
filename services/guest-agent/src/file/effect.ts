/** Runs one change of the workspace's files, if the caller may still change them at that moment. Rejects, and nothing ran, if not. */
export type Effect = <T>(change: () => Promise<T>) => Promise<T>;
