import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import { isObject, type JsonObject, listIn, objectIn, stringIn } from "../json.ts";

/** How an API server is reached and who the caller is. */
export interface ServerAccess {
  readonly url: string;
  readonly ca: string | undefined;
  readonly token: string | undefined;
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined;
}

/** Reads the current context of a kubeconfig. Throws by name what it asks for and is not done here: plugins, passwords, unverified TLS. */
export function readKubeconfig(path: string): ServerAccess {
  const config: unknown = parse(readFileSync(path, "utf8"));
  const context = named(config, "contexts", stringIn(config, "current-context"), "context", path);
  const cluster = named(config, "clusters", stringIn(context, "cluster"), "cluster", path);
  const user = named(config, "users", stringIn(context, "user"), "user", path);
  const url = stringIn(cluster, "server");
  if (url === undefined) throw new Error(`The kubeconfig ${path} names no server.`);
  for (const unsupported of ["exec", "auth-provider", "username"])
    if (user[unsupported] !== undefined)
      throw new Error(
        `The kubeconfig ${path} asks for "${unsupported}"; a token or a client certificate is read here.`,
      );
  if (cluster["insecure-skip-tls-verify"] === true)
    throw new Error(`The kubeconfig ${path} leaves the server unverified; give its certificate authority.`);
  const text = (holder: JsonObject, name: string) => pemIn(holder, name, dirname(path));
  const cert = text(user, "client-certificate");
  const key = text(user, "client-key");
  const tokenFile = stringIn(user, "tokenFile");
  const token =
    stringIn(user, "token") ?? (tokenFile === undefined ? undefined : readFileSync(tokenFile, "utf8").trim());
  return {
    url,
    ca: text(cluster, "certificate-authority"),
    token,
    clientCertificate: cert === undefined || key === undefined ? undefined : { cert, key },
  };
}

function named(config: unknown, list: string, name: string | undefined, member: string, path: string): JsonObject {
  const found = listIn(config, list).find((entry) => stringIn(entry, "name") === name);
  const value = objectIn(found, member);
  if (!isObject(value)) throw new Error(`The kubeconfig ${path} has no ${member} named ${JSON.stringify(name)}.`);
  return value;
}

/** `NAME-data` in base64, or the file that `NAME` names, relative to the kubeconfig. */
function pemIn(holder: JsonObject, name: string, directory: string): string | undefined {
  const data = stringIn(holder, `${name}-data`);
  if (data !== undefined) return Buffer.from(data, "base64").toString();
  const file = stringIn(holder, name);
  return file === undefined ? undefined : readFileSync(resolve(directory, file), "utf8");
}
