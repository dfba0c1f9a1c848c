import ora from "ora";

/** Tells on standard error how far work is, where that is a terminal; says nothing elsewhere. */
export interface Progress extends Disposable {
  say(text: string): void;
}

/** Shows `text` and the seconds since, until disposed. */
export function progress(text: string): Progress {
  const startedAt = performance.now();
  let words = text;
  // A terminal without a size (0 columns, as some CI's) is none: ora would count and clear lines without end.
  const isShown = process.stderr.isTTY && process.stderr.columns > 0;
  const spinner = ora({ stream: process.stderr, discardStdin: false, isSilent: !isShown });
  const show = (): void => {
    spinner.text = `${words} ${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  };
  show();
  spinner.start();
  const tick = setInterval(show, 200);
  return {
    say: (next) => {
      words = next;
    },
    [Symbol.dispose]: () => {
      clearInterval(tick);
      spinner.stop();
    },
  };
}

/** Bytes for people, as "12.3 MiB". */
export function sizeWords(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${bytes} B` : `${value.toFixed(1)} ${units[unit]}`;
}
