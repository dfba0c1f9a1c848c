import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, goBuild } from "./go-build.ts";

/** The programs of a real cluster, by the name that the Go tool gives each: the last part of its path in go.mod. */
export const programs = {
  etcd: "server",
  apiServer: "kube-apiserver",
  controllerManager: "kube-controller-manager",
  sandboxController: "agent-sandbox-controller",
} as const;

export type Program = keyof typeof programs;

/** Where the built programs and the manifests of agent-sandbox lie. */
export interface ProgramFolder {
  readonly path: string;
  /** Undefined for a program that could not be built. */
  file(program: Program): string | undefined;
  readonly versions: { readonly kubernetes: string; readonly agentSandbox: string; readonly etcd: string };
}

/** There is no Go on this machine, and nothing was built before. */
export class NoGoError extends Error {}

const here = import.meta.dirname;
const goMod = readFileSync(join(here, "go.mod"), "utf8");
/** Changing how things are built makes another folder. */
const recipe = "1";
const run = promisify(execFile);

/** Builds what is missing, once per content of go.mod. Says what it does; throws NoGoError where it cannot. */
export async function ensurePrograms(options: BuildOptions): Promise<ProgramFolder> {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  const path = join(cache, "holdfast", "cluster", hashOfVersions());
  if (!existsSync(join(path, "complete"))) await build(path, options);
  return {
    path,
    file: (program) => {
      const file = join(path, programs[program]);
      return existsSync(file) ? file : undefined;
    },
    versions,
  };
}

const versions = {
  kubernetes: versionOf("k8s.io/kubernetes"),
  agentSandbox: versionOf("sigs.k8s.io/agent-sandbox"),
  etcd: versionOf("go.etcd.io/etcd/server/v3"),
};

function versionOf(module: string): string {
  const found = new RegExp(`^\\t${module.replaceAll(".", "\\.")} (v\\S+)`, "m").exec(goMod)?.[1];
  if (found === undefined) throw new Error(`go.mod asks for no version of ${module}`);
  return found;
}

function hashOfVersions(): string {
  const hash = createHash("sha256").update(recipe).update(process.arch);
  for (const name of ["go.mod", "go.sum"]) hash.update(readFileSync(join(here, name)));
  return hash.digest("hex").slice(0, 16);
}

async function build(path: string, options: BuildOptions): Promise<void> {
  const { say } = options;
  const go = await findGo();
  const began = performance.now();
  say(`building etcd, kube-apiserver, kube-controller-manager and agent-sandbox (once; minutes) into ${path}`);
  const draft = `${path}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  try {
    const asked = [...goMod.matchAll(/^\t(\S+)$/gm)].map((match) => match[1] ?? "");
    const failed = await compile(go, asked, draft, options).then(
      () => [],
      // One that fails must not cost the others: each is tried alone, and what cannot be had is said by whoever needs it.
      (error: unknown) => {
        if (options.signal.aborted) throw error;
        return eachAlone(go, asked, draft, options);
      },
    );
    await keepManifests(go, draft);
    if (failed.length === 0) await writeFile(join(draft, "complete"), "");
    await rm(path, { recursive: true, force: true });
    await rename(draft, path).catch((error: unknown) => {
      if (!existsSync(join(path, "complete"))) throw error; // else another run was faster, with the same result
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  say(`built in ${((performance.now() - began) / 1000).toFixed(0)} s`);
}

async function eachAlone(go: string, asked: readonly string[], into: string, options: BuildOptions) {
  const failed: string[] = [];
  for (const program of asked) {
    await compile(go, [program], into, options).catch((error: unknown) => {
      if (options.signal.aborted) throw error;
      failed.push(program);
      options.say(`${program} could not be built: ${error instanceof Error ? error.message : error}`);
    });
  }
  return failed;
}

function compile(go: string, what: readonly string[], into: string, options: BuildOptions): Promise<void> {
  // What a release build stamps: the server tells it as its version, and clients compare it.
  const [major = "", minor = ""] = versions.kubernetes.slice(1).split(".");
  const stamps = { gitVersion: versions.kubernetes, gitMajor: major, gitMinor: minor };
  const stamped = Object.entries(stamps).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  const flags = ["-buildvcs=false", "-trimpath", "-ldflags", ["-s", "-w", ...stamped].join(" ")];
  return goBuild(go, [...flags, "-o", `${into}/`, ...what], here, options);
}

/** The custom resources and the rights of the controller, from the very source that it is built from. */
async function keepManifests(go: string, into: string): Promise<void> {
  const asked = ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/agent-sandbox"];
  const source = (await run(go, asked, { cwd: here, env: { ...process.env, GOWORK: "off" } })).stdout.trim();
  await mkdir(join(into, "crds"), { recursive: true });
  for (const name of await readdir(join(source, "k8s", "crds")))
    await copyFile(join(source, "k8s", "crds", name), join(into, "crds", name));
  await copyFile(join(source, "k8s", "rbac.generated.yaml"), join(into, "rbac.yaml"));
}

/** The Go tool: the one that HOLDFAST_GO names, or that of the path, or where its installer puts it. */
async function findGo(): Promise<string> {
  const named = process.env.HOLDFAST_GO;
  for (const go of named === undefined ? ["go", "/usr/local/go/bin/go"] : [named]) {
    const found = await run(go, ["version"]).then(
      () => true,
      () => false, // not there, or not one that runs
    );
    if (found) return go;
  }
  throw new NoGoError("Go is not installed, and the programs of a real cluster were not built before");
}
