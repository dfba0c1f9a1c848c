import { createRequire } from "node:module";

/** The part of koffi that is used. (docs/decisions/0009-libc-by-koffi.md) */
export interface Koffi {
  load(path: null): { func(signature: string): NativeFunction };
  /** Of the last call that was made: in the callback of an asynchronous one, that call's. */
  errno(): number;
  readonly os: { readonly errno: Readonly<Record<string, number>> };
}

export interface NativeFunction {
  (...args: unknown[]): number;
  /** In a thread of libuv's pool; the last argument is called with an error, or with the result. */
  async(...args: unknown[]): void;
}

let loaded: Koffi | undefined | "not yet" = "not yet";

/** Loads the addon once, for glibc or musl. Undefined where neither fits this machine. */
export function loadKoffi(): Koffi | undefined {
  if (loaded === "not yet") loaded = load();
  return loaded;
}

/** The name of an error number, as "ENOENT". */
export function nameOfErrno(koffi: Koffi, errno: number): string {
  return Object.entries(koffi.os.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;
}

function load(): Koffi | undefined {
  const require = createRequire(import.meta.url);
  const failures: unknown[] = [];
  for (const addon of ["./koffi-glibc.node", "./koffi-musl.node"]) {
    try {
      return require(addon);
    } catch (error) {
      failures.push(error);
    }
  }
  console.error(
    "no addon for calls of the C library fits this machine; watching files, flush and sessions are not served:",
    ...failures,
  );
  return undefined;
}
