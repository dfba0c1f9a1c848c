import { accessSync, constants, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { KubeConfig, loadYaml } from "@kubernetes/client-node";
import { isObject, member } from "./objects/json.ts";
import { TokenFileAuth, tokenFileProvider } from "./token-file-auth.ts";

/** How the cluster is reached: a kubeconfig (the default one when no path is given), or the pod's own service account. */
export type ClusterAccess = { readonly kubeconfigPath?: string } | { readonly inCluster: true };

/** The cluster cannot be reached as configured; says which file or variable is at fault. */
export class KubeConfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "KubeConfigError";
  }
}

/** Reads how the cluster is reached. No request is made and no credential plugin is run. Throws KubeConfigError. */
export function kubeConfigFrom(access: ClusterAccess): KubeConfig {
  const config = "inCluster" in access ? fromServiceAccount() : fromKubeconfig(access.kubeconfigPath);
  assertUsable(config);
  return config;
}

function fromServiceAccount(): KubeConfig {
  for (const name of ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]) {
    if (!process.env[name]) throw new KubeConfigError(`Not in a cluster: ${name} is not set.`);
  }
  const config = new KubeConfig();
  config.loadFromCluster();
  const tokenFile: unknown = config.getCurrentUser()?.authProvider?.config?.tokenFile;
  if (typeof tokenFile !== "string") throw new KubeConfigError("The service account's token file is not known.");
  useTokenFile(config, tokenFile);
  return config;
}

function fromKubeconfig(givenPath: string | undefined): KubeConfig {
  const path = givenPath ?? defaultKubeconfigPath();
  const config = new KubeConfig();
  try {
    config.loadFromFile(path);
    const tokenFile = tokenFileOf(loadYaml(readFileSync(path, "utf8")), config.getCurrentUser()?.name);
    if (tokenFile !== undefined) useTokenFile(config, resolve(dirname(path), tokenFile));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new KubeConfigError(`The kubeconfig ${path} cannot be read: ${why}`, error);
  }
  if (!config.getCurrentCluster()) {
    throw new KubeConfigError(
      `The kubeconfig ${path} names no cluster: its current-context is ${JSON.stringify(config.getCurrentContext() ?? "")}, ` +
        `its contexts are ${JSON.stringify(config.getContexts().map(({ name }) => name))}.`,
    );
  }
  return config;
}

function defaultKubeconfigPath(): string {
  const named = process.env.KUBECONFIG?.split(delimiter).filter((path) => path !== "") ?? [];
  if (named.length > 1) throw new KubeConfigError("KUBECONFIG names several files: give the path of one.");
  return named[0] ?? join(homedir(), ".kube", "config");
}

/** `tokenFile` of a kubeconfig's user, which client-node does not read. */
function tokenFileOf(kubeconfig: unknown, userName: string | undefined): string | undefined {
  const users = isObject(kubeconfig) ? member(kubeconfig, "users") : undefined;
  for (const entry of Array.isArray(users) ? users : []) {
    if (!isObject(entry) || member(entry, "name") !== userName) continue;
    const user = member(entry, "user");
    const tokenFile = isObject(user) ? member(user, "tokenFile") : undefined;
    if (typeof tokenFile === "string" && tokenFile !== "") return tokenFile;
  }
  return undefined;
}

/** Replaces the user's token by the file's, which is read for every request: it is rotated. */
function useTokenFile(config: KubeConfig, path: string): void {
  const current = config.getCurrentUser()?.name;
  config.users = config.users.map((user) =>
    user.name === current ? { ...user, authProvider: { name: tokenFileProvider, config: { path } } } : user,
  );
  config.addAuthenticator(new TokenFileAuth());
}

function assertUsable(config: KubeConfig): void {
  const cluster = config.getCurrentCluster();
  const server = cluster?.server ?? "";
  const url = URL.parse(server);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    throw new KubeConfigError(`The cluster's server is not an http or https address: ${JSON.stringify(server)}.`);
  }
  if (url.protocol === "http:" && cluster?.skipTLSVerify !== true) {
    throw new KubeConfigError(
      `The cluster's server ${server} is plain http: set insecure-skip-tls-verify to allow it.`,
    );
  }
  const user = config.getCurrentUser();
  for (const file of [cluster?.caFile, user?.certFile, user?.keyFile]) {
    if (file) assertReadable(file);
  }
}

function assertReadable(file: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new KubeConfigError(`The cluster's configuration names ${file}, which cannot be read.`, error);
  }
}
