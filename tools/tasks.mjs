// What each `npm run` task consists of: programs of node_modules/.bin, or "node" for the Node that runs everything of ours.
import { join } from "node:path";
import { root } from "./install.mjs";

const at = (path) => join(root, path);
const script = (path, args = []) => ({
  program: "node",
  argv: ["--disable-warning=ExperimentalWarning", at(path), ...args],
});
const agentBundle = script("tools/bundle-agent.ts");

const staticChecks = [
  { program: "tsc", argv: ["-p", at("tsconfig.json")] },
  { program: "biome", argv: ["check", "--config-path", root, root] },
  { program: "buf", argv: ["lint", root] },
  // The baseline changes only with a decision. (docs/decisions/0003-api-baseline.md)
  { program: "buf", argv: ["build", root, "-o", at("node_modules/.holdfast-api.binpb")] },
  {
    program: "buf",
    argv: ["breaking", at("node_modules/.holdfast-api.binpb"), "--against", at("proto/baseline.binpb")],
  },
  script("tools/check-generated.ts"),
];

/** Task name → the steps for its arguments. */
export const tasks = {
  start: (args) => [agentBundle, script("services/control-plane/src/main.ts", ["serve", ...args])],
  cluster: (args) =>
    args[0] === "faults"
      ? [script("tools/cluster-faults.ts", args.slice(1))]
      : [agentBundle, script("services/control-plane/src/main.ts", ["cluster", ...args])],
  demo: (args) => [agentBundle, script("tools/demo.ts", args)],
  check: () => staticChecks,
  test: (args) => [
    ...(args.length > 0 ? [] : staticChecks),
    agentBundle,
    { program: "vitest", argv: ["run", "--root", root, ...args], tellsVerdict: true },
  ],
  interleavings: (args) => [script("test/interleavings/run.ts", args)],
  conformance: (args) => [script("test/cluster-conformance/main.ts", args)],
  "test:cluster": (args) => [script("test/cluster-conformance/real/run.ts", args)],
  fuzz: (args) => [agentBundle, script("test/guest-fuzz/run.ts", args)],
  soak: (args) => [agentBundle, script("test/guest-soak/run.ts", args)],
  bench: (args) => [agentBundle, script("bench/run.ts", args)],
  generate: () => [
    { program: "buf", argv: ["generate", root, "--template", at("buf.gen.yaml"), "-o", root] },
    script("tools/docs/generate-docs.ts"),
  ],
};
