import { fork } from "node:child_process";
import { join } from "node:path";

/** Programs that are started beside what is measured. */
export interface Beside {
  readonly perSecond: number;
  /** By whom; undefined: a process that has nothing to do with what is measured. */
  readonly agent: { readonly host: string; readonly port: number; readonly token: string } | undefined;
}

export interface Started {
  readonly started: number;
  /** Of the first that failed; "" if none did. */
  readonly failure: string;
}

/** Measures while programs are started beside. */
export async function beside<T>(wish: Beside, measure: () => Promise<T>): Promise<T> {
  const child = fork(join(import.meta.dirname, "starts-beside.ts"), [JSON.stringify(wish)], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const told = (): Promise<unknown> => new Promise((resolve) => child.once("message", resolve));
  await told();
  try {
    return await measure();
  } finally {
    const answer = told();
    child.send("stop");
    const { started, failure } = (await answer) as Started;
    if (failure !== "") console.error(`of ${started} programs beside not all ran: ${failure}`);
  }
}
