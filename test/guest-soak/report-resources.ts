/** Loaded into the agent (`node --expose-gc --import`): on SIGUSR2 it says what it holds, in one line on standard error. */
process.on("SIGUSR2", () => {
  (globalThis as { gc?: () => void }).gc?.();
  const counts: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  console.error(`resources: ${JSON.stringify({ counts, heapBytes: heapUsed + external, arrayBuffers })}`);
});
