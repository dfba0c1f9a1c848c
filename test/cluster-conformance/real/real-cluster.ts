import { randomInt } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AgentProgram,
  defaultTemplate,
  HttpResourceApi,
  type KubeObject,
  type ResourceApi,
  type ResourceRef,
  readKubeconfig,
  startLocalNode,
} from "@holdfast/embedded-cluster";
import type { Logger } from "pino";
import { type ServerFiles, type User, users, writeKubeconfig, writeServerFiles } from "./access.ts";
import { awaitHttp } from "./await-http.ts";
import {
  apiServerArguments,
  certificateOf,
  controllerHealthUrlOf,
  controllerManagerArguments,
  etcdArguments,
  etcdUrlOf,
  type Place,
  sandboxControllerArguments,
  serverUrlOf,
} from "./command-lines.ts";
import { type KeptProcess, keepProcess } from "./kept-process.ts";
import { awaitEstablished, grantControllerRole, installDefinitions } from "./manifests.ts";
import type { Program, ProgramFolder } from "./programs.ts";
import { type MarkedEnvironment, markRun } from "./run-mark.ts";

export interface RealClusterOptions {
  readonly programs: ProgramFolder;
  /** What runs in a pod that names its image. */
  readonly agent: AgentProgram;
  readonly log: Logger;
}

/** A kube-apiserver on etcd with its controllers, the agent-sandbox controller, and the local node as its kubelet. */
export interface RealCluster extends AsyncDisposable {
  readonly kubeconfigPath: string;
  readonly etcdUrl: string;
  /** Where every part's output is. Removed at the stop. */
  readonly folder: string;
  /** Whatever is started with it ends with this process. */
  readonly mark: MarkedEnvironment;
  /** How the parts were started. */
  readonly flags: readonly string[];
  /** Parts that could not be had. */
  readonly missing: readonly Program[];
  /** Rejects when a part ends by itself. Never resolves. */
  readonly failed: Promise<never>;
}

const startMs = 120_000;
const accounts: ResourceRef = { group: "", version: "v1", plural: "serviceaccounts" };
const templates: ResourceRef = { group: "extensions.agents.x-k8s.io", version: "v1beta1", plural: "sandboxtemplates" };

/** Starts a whole cluster on an address of its own. Nothing is left of one that does not start, or whose process is killed. */
export async function startRealCluster(options: RealClusterOptions): Promise<RealCluster> {
  const { programs, agent, log } = options;
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "holdfast-real-"));
  parts.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  // 127.0.x.y: local nodes claim their addresses elsewhere, and fixed ports on an address of one's own meet nobody's.
  const place: Place = { folder, address: `127.0.${randomInt(1, 255)}.${randomInt(2, 255)}` };
  const mark = markRun(folder);
  const flags: string[] = [];
  const running: KeptProcess[] = [];
  const start = (program: Program, argv: readonly string[]): boolean => {
    const file = programs.file(program);
    if (file === undefined) return false;
    flags.push(
      `${program} ${argv.filter((text) => !text.includes(folder)).join(" ")}`.replaceAll(place.address, "ADDRESS"),
    );
    const process = keepProcess(program, file, argv, join(folder, `${program}.log`), mark);
    running.push(process);
    parts.defer(process.stop);
    return true;
  };
  const until = <T>(ready: Promise<T>): Promise<T> => Promise.race([ready, ...running.map((part) => part.failed)]);
  const limit = AbortSignal.timeout(startMs);

  if (!start("etcd", etcdArguments(place))) throw new Error("There is no etcd: without it there is no cluster.");
  await until(awaitHttp(`${etcdUrlOf(place)}/health`, limit));
  const files = writeServerFiles(folder);
  if (!start("apiServer", apiServerArguments(place, files)))
    throw new Error("There is no kube-apiserver to test against.");
  await until(awaitServer(place, files, limit));
  const kubeconfigs = writeKubeconfigs(place, files);

  const api = new HttpResourceApi(readKubeconfig(kubeconfigs.admin));
  parts.defer(async () => api.close());
  const missing: Program[] = [];
  if (!start("controllerManager", controllerManagerArguments(place, kubeconfigs.controllerManager)))
    missing.push("controllerManager");
  const definitions = await installDefinitions(api, programs.path);
  await until(awaitEstablished(api, definitions, limit));
  await grantControllerRole(api, programs.path, users.sandboxController.name);
  if (start("sandboxController", sandboxControllerArguments(place, kubeconfigs.sandboxController)))
    await until(awaitHttp(controllerHealthUrlOf(place), limit));
  else missing.push("sandboxController");

  await until(api.create(templates, "default", defaultTemplate(agent.image)));
  await until(awaitDefaultAccount(api, missing, limit));
  const node = await until(startLocalNode({ api, dataDir: join(folder, "node"), agent, log }));
  parts.defer(() => node.stop());
  const failed = Promise.race(running.map((part) => part.failed));
  failed.catch(() => undefined); // whoever waits for it hears it
  const whole = parts.move();
  return {
    kubeconfigPath: kubeconfigs.admin,
    etcdUrl: etcdUrlOf(place),
    folder,
    mark,
    flags,
    missing,
    failed,
    [Symbol.asyncDispose]: () => whole.disposeAsync(),
  };
}

async function awaitServer(place: Place, { tokens }: ServerFiles, limit: AbortSignal): Promise<void> {
  await awaitHttp(`${serverUrlOf(place)}/readyz`, limit, () => ({
    ca: existsSync(certificateOf(place)) ? readFileSync(certificateOf(place)) : "",
    headers: { authorization: `Bearer ${tokens.admin}` },
  }));
}

function writeKubeconfigs(place: Place, { tokens }: ServerFiles): Record<User, string> {
  const ca = readFileSync(certificateOf(place), "utf8");
  const write = (user: User) => writeKubeconfig(place.folder, user, serverUrlOf(place), ca, tokens[user]);
  return {
    admin: write("admin"),
    controllerManager: write("controllerManager"),
    sandboxController: write("sandboxController"),
  };
}

/** A namespace takes pods once it has its default account; where no controller makes it, we do. */
async function awaitDefaultAccount(api: ResourceApi, missing: readonly Program[], limit: AbortSignal): Promise<void> {
  if (missing.includes("controllerManager")) {
    const account: KubeObject = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } };
    await api.create(accounts, "default", account);
    return;
  }
  const { items, resourceVersion } = await api.list(accounts, "default");
  if (items.length > 0) return;
  for await (const event of api.watch(accounts, resourceVersion, limit, "default")) if (event.type === "ADDED") return;
  throw new Error("The namespace default got no account: the controller manager did not make one in time.");
}
