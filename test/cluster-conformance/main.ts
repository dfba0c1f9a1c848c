import { existsSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { inspect } from "node:util";
import { readFlags, refuseFlags, wholeFlag } from "../../tools/read-flags.ts";
import { allCases } from "./cases/index.ts";
import { etcdCompaction } from "./etcd-compaction.ts";
import { knownDifferences } from "./known-differences.ts";
import { readRecording, recordingPath, recordingText } from "./recorded/recording.ts";
import { type Difference, describeDifference, differences, isUnder } from "./suite/compare.ts";
import { type Outcome, runCase } from "./suite/run-case.ts";
import { openTarget } from "./target.ts";

const usage = `npm run conformance -- [--kubeconfig FILE] [--namespace NAME] [--only ID …] [--record FILE]
  Runs the conformance suite: against an embedded cluster, or against the one that a kubeconfig names.
  --only       a case's id, or how ids begin; may be given several times
  --record     writes what was seen, with a header of versions; only a whole run may be recorded
  --image, --node-path   a program image that the cluster's node has, and Node in it
  --etcd URL   the etcd behind the server, so that history can be compacted
  --controller VERSION   the agent-sandbox controller's, for the header of a recording
  --flag TEXT  how the cluster was started, for the header of a recording; may be given several times
  --concurrency N        cases at a time (4)`;

const flags = readFlags("conformance", {
  kubeconfig: { type: "string" },
  namespace: { type: "string" },
  only: { type: "string", multiple: true },
  record: { type: "string" },
  image: { type: "string" },
  "node-path": { type: "string" },
  etcd: { type: "string" },
  controller: { type: "string" },
  flag: { type: "string", multiple: true },
  concurrency: { type: "string" },
  help: { type: "boolean" },
});
if (flags.help === true) {
  console.log(usage);
  process.exit(0);
}
const wanted = allCases.filter(
  ({ id }) => flags.only === undefined || flags.only.some((start) => id === start || id.startsWith(start)),
);
const refuse = (why: string): never => refuseFlags("conformance", why);
const concurrency = wholeFlag("conformance", "concurrency", flags.concurrency ?? "4", 1, 64);
for (const start of flags.only ?? []) {
  if (!allCases.some(({ id }) => id.startsWith(start))) refuse(`--only ${start}: no case has such an id`);
}
if (flags.record !== undefined && (flags.only !== undefined || flags.kubeconfig === undefined))
  refuse("--record is of a whole run against another cluster (no --only, with --kubeconfig)");
if (flags.record !== undefined && !existsSync(dirname(resolve(flags.record))))
  refuse(`--record ${flags.record}: there is no such folder`);
if (flags.kubeconfig !== undefined && !existsSync(flags.kubeconfig))
  refuse(`--kubeconfig ${flags.kubeconfig}: there is no such file`);
for (const name of ["namespace", "image", "node-path", "etcd", "controller"] as const) {
  if (flags[name] !== undefined && flags.kubeconfig === undefined)
    refuse(`--${name} would do nothing without --kubeconfig: the embedded cluster has its own`);
}
if (flags.flag !== undefined && flags.record === undefined) refuse("--flag would do nothing without --record");

const recording = flags.record === undefined && existsSync(recordingPath) ? readRecording() : undefined;
const outcomes = new Map<string, Outcome>();
let kubernetes = "";
{
  await using target =
    flags.kubeconfig === undefined
      ? await (await import("./embedded-target.ts")).startEmbeddedTarget()
      : await openTarget({
          kubeconfig: flags.kubeconfig,
          namespace: flags.namespace,
          image: flags.image,
          nodePath: flags["node-path"],
          compact: flags.etcd === undefined ? undefined : etcdCompaction(flags.etcd),
        });
  const version = await target.stage.client.call({ method: "GET", path: "/version" }, AbortSignal.timeout(10_000));
  kubernetes = String((version.body as { gitVersion?: string }).gitVersion);
  console.log(`cluster ${kubernetes}, namespace ${target.stage.namespace}, parts: ${[...target.parts].join(", ")}`);
  // A compaction takes history away from whoever reads it: those cases run by themselves.
  const waiting = wanted.filter(({ needs = [] }) => !needs.includes("compaction"));
  const alone = wanted.filter(({ needs = [] }) => needs.includes("compaction"));
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      outcomes.set(next.id, await runCase(next, target.parts, target.stage));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  waiting.push(...alone);
  await worker();
  // Once more, by itself: a case shares its cluster with the others. (docs/decisions/0014-second-try.md)
  for (const one of wanted.filter(({ id }) => !isRight(id))) {
    console.log(`not right at its first try: ${one.id}${firstWords(outcomes.get(one.id))}`);
    outcomes.set(one.id, await runCase(one, target.parts, target.stage));
  }
}

const width = Math.max(...wanted.map(({ id }) => id.length));
const counts = { passed: 0, failed: 0, skipped: 0, differs: 0 };
for (const { id, title, source } of wanted) {
  const outcome = outcomes.get(id);
  if (outcome === undefined) continue;
  const unexplained = unexplainedOf(id, outcome);
  const word = outcome.t === "passed" && unexplained.length > 0 ? "differs" : outcome.t;
  counts[word] += 1;
  const time = outcome.t === "skipped" ? "" : `${Math.round(outcome.ms)} ms`;
  console.log(`${word.padEnd(7)}  ${id.padEnd(width)}  ${time.padStart(8)}  ${title}`);
  if (outcome.t === "skipped") console.log(`  lacking here: ${outcome.lacking.join(", ")}`);
  if (outcome.t === "failed") console.log(`  source: ${source}\n${indented(inspect(outcome.error, { depth: 4 }))}`);
  for (const { step, seen } of outcome.t === "failed" ? outcome.transcript.slice(-2) : []) {
    console.log(`  last seen, "${step}": ${JSON.stringify(seen)}`);
  }
  for (const difference of unexplained) console.log(describeDifference(difference));
}
console.log(
  `${counts.passed} passed, ${counts.failed} failed, ${counts.differs} differ from the recording, ${counts.skipped} skipped`,
);
if (flags.record !== undefined && counts.failed > 0)
  console.log("not recorded: a recording is of a run without failures");
else if (flags.record !== undefined) {
  const header = {
    kubernetes,
    sandboxController: flags.controller ?? "unknown",
    recordedAt: new Date().toISOString(),
    flags: flags.flag ?? [],
  };
  const cases = Object.fromEntries(
    wanted.flatMap(({ id }) => {
      const outcome = outcomes.get(id);
      return outcome?.t === "passed" ? [[id, outcome.transcript]] : [];
    }),
  );
  writeFileSync(flags.record, recordingText({ header, cases }));
  console.log(`recorded ${Object.keys(cases).length} of ${wanted.length} cases to ${flags.record}`);
}
process.exit(counts.failed + counts.differs > 0 ? 1 : 0);

/** Where an outcome is not what was recorded, and no known difference says why. */
function unexplainedOf(id: string, outcome: Outcome): readonly Difference[] {
  const recorded = recording?.cases[id];
  if (outcome.t !== "passed" || recorded === undefined) return [];
  return differences(recorded, outcome.transcript).filter(
    (difference) => !knownDifferences.some((known) => known.case === id && isUnder(difference, known)),
  );
}

function isRight(id: string): boolean {
  const outcome = outcomes.get(id);
  return outcome !== undefined && outcome.t !== "failed" && unexplainedOf(id, outcome).length === 0;
}

function firstWords(outcome: Outcome | undefined): string {
  return outcome?.t === "failed" ? `: ${String(outcome.error).split("\n")[0]}` : "";
}

function indented(text: string): string {
  return text
    .split("\n")
    .slice(0, 40)
    .map((line) => `  ${line}`)
    .join("\n");
}
