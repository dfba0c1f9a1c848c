import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parse as parseYaml } from "yaml";
import { at, type Json, listAt } from "./json.ts";

/** How to reach a cluster: what the current context of a kubeconfig says. */
export interface Access {
  readonly url: string;
  readonly ca: string | undefined;
  readonly token: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Reads a kubeconfig of tokens or client certificates; nothing that starts a program is supported. */
export function readAccess(path: string): Access {
  const config: Json = parseYaml(readFileSync(path, "utf8"));
  const context = at(named(config, "contexts", at(config, "current-context")), "context");
  const cluster = at(named(config, "clusters", at(context, "cluster")), "cluster");
  const user = at(named(config, "users", at(context, "user")), "user");
  const content = (holder: Json | undefined, member: string): string | undefined => {
    const data = at(holder, `${member}-data`);
    if (typeof data === "string") return Buffer.from(data, "base64").toString();
    const file = at(holder, member);
    return typeof file === "string" ? readFileSync(resolve(dirname(path), file), "utf8") : undefined;
  };
  const tokenFile = at(user, "tokenFile");
  const token = typeof tokenFile === "string" ? readFileSync(tokenFile, "utf8").trim() : at(user, "token");
  const url = at(cluster, "server");
  if (typeof url !== "string") throw new Error(`${path} names no server`);
  return {
    url: url.replace(/\/$/, ""),
    ca: content(cluster, "certificate-authority"),
    token: typeof token === "string" ? token : undefined,
    cert: content(user, "client-certificate"),
    key: content(user, "client-key"),
  };
}

function named(config: Json, list: string, name: Json | undefined): Json | undefined {
  const entries = listAt(config, list);
  return entries.find((entry) => name === undefined || at(entry, "name") === name);
}
