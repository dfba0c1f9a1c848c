import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const scripts = {
  start: ["services/control-plane/src/main.ts", "serve"],
  cluster: ["services/control-plane/src/main.ts", "cluster"],
  faults: ["tools/cluster-faults.ts"],
  demo: ["tools/demo.ts"],
  conformance: ["test/cluster-conformance/main.ts"],
  "test:cluster": ["test/cluster-conformance/real/run.ts"],
  interleavings: ["test/interleavings/run.ts"],
  fuzz: ["test/guest-fuzz/run.ts"],
  soak: ["test/guest-soak/run.ts"],
  bench: ["bench/run.ts"],
  check: ["tools/launch.mjs", "check"],
  generate: ["tools/launch.mjs", "generate"],
} as const;

async function run(task: keyof typeof scripts, flags: readonly string[]) {
  const [script, ...words] = scripts[task];
  const argv = ["--disable-warning=ExperimentalWarning", join(root, script), ...words, ...flags];
  const child = spawn(process.execPath, argv, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk));
  const [code] = await once(child, "close");
  return { code, out, err };
}

/** Every case is refused before anything is started, in words that name what is wrong. */
const refused: readonly (readonly [keyof typeof scripts, readonly string[], string])[] = [
  ["start", ["--nosuch"], "--nosuch"],
  ["start", ["--listen"], "--listen"],
  ["start", ["--listen", "127.0.0.1:-1"], "--listen must be host:port"],
  ["start", ["--listen", "--insecure"], "--listen needs a value"],
  ["cluster", ["--namespace", "foo"], "--namespace would do nothing"],
  ["cluster", ["--nosuch", "1"], "--nosuch"],
  ["cluster", ["foo"], "too many arguments"],
  ["faults", ["list", "--data-dir"], "--data-dir needs a value"],
  ["faults", ["list", "--nosuch"], "unknown flag --nosuch"],
  ["demo", ["--nosuch"], "--nosuch"],
  ["demo", ["--target"], "--target"],
  ["demo", ["--target", "nowhere"], "--target must be host:port"],
  ["demo", ["--target", "127.0.0.1:1", "--separate"], "--separate would do nothing"],
  ["demo", ["word"], "word"],
  ["conformance", ["--concurrency", "NaN"], "--concurrency must be a whole number from 1 to 64"],
  ["conformance", ["--concurrency", "0"], "--concurrency must be a whole number"],
  ["conformance", ["--only", "nothing-such"], "--only nothing-such: no case"],
  ["conformance", ["--only", "pods/", "--only", "nothing-such"], "--only nothing-such: no case"],
  ["conformance", ["--namespace", "foo"], "--namespace would do nothing without --kubeconfig"],
  ["conformance", ["--kubeconfig", "/nowhere"], "--kubeconfig /nowhere: there is no such file"],
  ["conformance", ["--record", "/nowhere/x", "--kubeconfig", "/etc/hostname"], "--record /nowhere/x"],
  ["conformance", ["--nosuch"], "--nosuch"],
  ["test:cluster", ["--nosuch"], "--nosuch"],
  ["test:cluster", ["--build-minutes", "0"], "--build-minutes must be a whole number from 1 to 1440"],
  ["test:cluster", ["--keep", "--record", "x"], "--record would do nothing beside --keep"],
  ["interleavings", ["--runs", "many"], '--runs must be a whole number from 1 to 2147483647; it is "many"'],
  ["interleavings", ["--seed=-1"], '--seed must be a whole number from 0 to 2147483647; it is "-1"'],
  ["interleavings", ["--nosuch"], "--nosuch"],
  ["fuzz", ["--seconds", "1e3"], "--seconds must be a whole number"],
  ["fuzz", ["--seconds="], "--seconds must be a whole number"],
  ["fuzz", ["--connections", "0"], "--connections must be a whole number"],
  ["fuzz", ["--without", "nothing such"], '--without "nothing such" is no guard'],
  ["fuzz", ["--nosuch"], "--nosuch"],
  ["soak", ["--seed", "-1"], "a value that begins with a dash is written --flag=-value"],
  ["soak", ["--commands", "NaN"], "--commands must be a whole number"],
  ["soak", ["--attaches"], "--attaches"],
  ["soak", ["--nosuch"], "--nosuch"],
  ["bench", ["nosuch"], 'no benchmark "nosuch"'],
  ["bench", ["guest:nosuch"], 'no part "guest:nosuch"'],
  ["bench", ["--nosuch"], 'no benchmark "--nosuch"'],
  ["check", ["--nosuch"], "takes no arguments"],
  ["generate", ["word"], "takes no arguments"],
];

describe("a command line that cannot be meant", () => {
  it.concurrent.each(refused.map(([task, flags, words]) => ({ task, flags, words })))(
    "npm run $task -- $flags is refused by name, with exit code 2",
    async ({ task, flags, words }) => {
      const { code, out, err } = await run(task, flags);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toContain(words);
      expect(err).not.toMatch(/^\s+at /mu); // a line for people, not a stack
    },
    120_000, // some of them load the whole product first
  );
});
