import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const root = dirname(import.meta.dirname);

/** Test code, and what is only there for it. */
const testCode = globSync(["{packages,services}/*/**/*.{ts,mjs}", "test/**/*.{ts,mjs}"], { cwd: root }).filter(
  (path) =>
    !/node_modules|\/dist\/|\/gen\//.test(path) &&
    /^test\/|^packages\/testkit\/|\/testing\/|\.(test|testing|fixture)\.m?ts$/.test(path) &&
    !["test/pauses.test.ts", "test/architecture.test.ts"].includes(path), // They name what they look for.
);

/** Whatever lets real time pass: a timer of Node's, a pause of ours, a thread that stands still. */
const letsTimePass = [
  "setTimeout",
  "setTimeoutPromise",
  "Atomics\\.wait",
  "scheduler\\.wait",
  "once\\(AbortSignal\\.timeout",
  "pause",
  "sleep",
  "delay",
];

type Why =
  | "the fault itself"
  | "looks again until it is so, for so long at most"
  | "gives up"
  | "under fake timers"
  | "of a program in a pod";

/** The only lines of test code at which real time may pass: how many of each file, and why no event can be waited for instead. */
const excused: Record<string, readonly [lines: number, why: Why, what: string]> = {
  "packages/embedded-cluster/src/local-node/long-timer.test.ts": [1, "under fake timers", "30 days"],
  "packages/embedded-cluster/src/local-node/testing/cluster.ts": [
    1,
    "gives up",
    "a pod that does not get there in time",
  ],
  "packages/embedded-cluster/src/local-node/testing/processes.ts": [
    1,
    lookAgain(),
    "processes tell nobody else of their end",
  ],
  "packages/guest-link/src/loopback.testing.ts": [1, lookAgain(), "the state of the other end of a socket"],
  "services/guest-agent/src/execution/drain.test.ts": [1, "the fault itself", "an agent that stands still"],
  "services/guest-agent/src/testing/agent-process.testing.ts": [1, lookAgain(), "the state of another process"],
  "test/cluster-conformance/cases/node.ts": [4, "of a program in a pod", "becomes ready, fails or exits after a while"],
  "test/cluster-conformance/real/await-http.ts": [1, lookAgain(), "a server that is starting"],
  "test/cluster-conformance/real/guardian.ts": [1, lookAgain(), "processes of a run that was killed"],
  "test/cluster-conformance/real/kept-process.ts": [1, "gives up", "a server that does not end when it is told to"],
  "test/cluster-conformance/suite/open-namespace.ts": [1, lookAgain(), "what any cluster makes with a namespace"],
  "test/cluster-conformance/suite/stage.ts": [1, lookAgain(), "what a cluster cannot be watched for"],
  "test/guest-fuzz/agent-run.ts": [1, lookAgain(), "the state of another process"],
  "test/guest-fuzz/displaced-reader.ts": [1, lookAgain(), "a frame that may never come"],
  "test/guest-fuzz/play-case.ts": [1, "gives up", "an agent that does not answer"],
  "test/guest-soak/soak.ts": [1, "the fault itself", "a client that goes at any moment"],
  "test/interleavings/real/real-run.ts": [
    2,
    "the fault itself",
    "steps of a sequence come at any moment; and one that looks again",
  ],
  "test/interleavings/real/real-world.ts": [
    2,
    "the fault itself",
    "a caller that goes at any moment; and one that looks again",
  ],
  "test/rpc/browser-terminal.ts": [2, lookAgain(), "a client tries again"],
  "test/rpc/cutting-proxy.ts": [2, "the fault itself", "a connection that is silent for a while before it ends"],
  "test/rpc/delay-proxy.ts": [2, "the fault itself", "a long way"],
  "test/rpc/faults-met-elsewhere.test.ts": [1, "the fault itself", "a reader of 200 KB/s"],
  "test/whole/far-client.ts": [1, "the fault itself", "a long way"],
  "test/whole/harness.ts": [1, lookAgain(), "the state of other processes"],
};

function lookAgain(): Why {
  return "looks again until it is so, for so long at most";
}

/** The lines that call one of them, by whatever name the file imports Node's. */
function linesOf(path: string): string[] {
  const text = readFileSync(join(root, path), "utf8");
  const imported = [...text.matchAll(/\bset(?:Timeout|Immediate) as (\w+)|import \* as (\w+) from "node:timers/g)];
  const names = imported.flatMap(([, timer, all]) => [...(timer ? [timer] : []), ...(all ? [`${all}\\.\\w+`] : [])]);
  const calls = new RegExp(`(?<![.\\w])(?:globalThis\\.)?(?:${[...letsTimePass, ...names].join("|")})\\(`);
  return text.split("\n").filter((line) => calls.test(line));
}

describe("no sleeping in tests", () => {
  it("lets real time pass nowhere but where it is excused: tests wait for what they are about", () => {
    expect(testCode.length).toBeGreaterThan(300);
    const found = testCode.map((path) => ({ path, lines: linesOf(path) }));
    const offences = found.filter(({ path, lines }) => lines.length !== (excused[path]?.[0] ?? 0));
    expect(offences).toEqual([]);
  });

  it("excuses no file that is gone", () => {
    expect(Object.keys(excused).filter((path) => !testCode.includes(path))).toEqual([]);
  });

  it("sees a promise of vitest's that nobody waits for: a poll like that cannot fail", () => {
    const offences = testCode.flatMap((path) =>
      readFileSync(join(root, path), "utf8")
        .split("\n")
        .filter((line) => /\bexpect\s*\.poll\(|\bvi\.waitFor\(|\bvi\.waitUntil\(/.test(line))
        .filter((line) => !/\b(await|return)\b.*(expect\s*\.poll|vi\.wait)|=>\s*expect\.poll\(/.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    );
    expect(offences).toEqual([]);
  });
});
