const lookMs = 500;

/** Aborts when this run is to end: a signal, or the death of the program that started it (which can pass nothing on). */
export function whenToEnd(): { readonly signal: AbortSignal; [Symbol.dispose](): void } {
  const ending = new AbortController();
  const end = () => ending.abort();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, end);
  const starter = process.ppid;
  const look = setInterval(() => process.ppid !== starter && end(), lookMs);
  look.unref();
  return {
    signal: ending.signal,
    [Symbol.dispose]: () => {
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.off(signal, end);
      clearInterval(look);
    },
  };
}
