import { get as getPlain } from "node:http";
import { get as getSecure, type RequestOptions } from "node:https";
import { setTimeout as delay } from "node:timers/promises";

const betweenTriesMs = 100;

/** Resolves when the address answers 200; `options` is asked anew at each try. Throws the last failure when the signal aborts. */
export async function awaitHttp(
  url: string,
  signal: AbortSignal,
  options: () => RequestOptions = () => ({}),
): Promise<void> {
  let last: unknown;
  while (!signal.aborted) {
    try {
      const code = await answerOf(url, options());
      if (code === 200) return;
      last = new Error(`${url} answered ${code}`);
    } catch (error) {
      last = error; // not listening yet
    }
    await delay(betweenTriesMs, undefined, { signal }).catch(() => undefined); // aborted: the loop ends
  }
  throw last ?? signal.reason;
}

function answerOf(url: string, options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const get = url.startsWith("https:") ? getSecure : getPlain;
    get(url, { agent: false, timeout: 5_000, ...options }, (answer) => {
      answer.resume();
      answer.once("end", () => resolve(answer.statusCode ?? 0));
      answer.once("error", reject);
    })
      .once("timeout", function (this: { destroy(error: Error): void }) {
        this.destroy(new Error(`${url}: no answer`));
      })
      .once("error", reject);
  });
}
