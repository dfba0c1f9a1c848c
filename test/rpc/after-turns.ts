/** Runs it so many turns of the event loop later: no time of the machine's, and between any two steps of a call in this process. */
export function afterTurns(turns: number, run: () => void): void {
  if (turns === 0) run();
  else setImmediate(() => afterTurns(turns - 1, run));
}
