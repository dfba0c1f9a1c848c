import { generateKeyPairSync, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";

/** Who calls the server, and in which group: one token each. */
export const users = {
  /** The suite, the service under test and the node. */
  admin: { name: "holdfast-test", group: "system:masters" },
  controllerManager: { name: "controller-manager", group: "system:masters" },
  sandboxController: { name: "agent-sandbox-controller", group: "controllers" },
} as const;

export type User = keyof typeof users;

/** The files with which the server knows its callers and signs what it issues. */
export interface ServerFiles {
  readonly tokens: Readonly<Record<User, string>>;
  readonly tokenFile: string;
  readonly accountKey: string;
}

/** Makes tokens and the key of service accounts. */
export function writeServerFiles(folder: string): ServerFiles {
  const token = () => randomBytes(24).toString("base64url");
  const tokens = { admin: token(), controllerManager: token(), sandboxController: token() };
  const tokenFile = join(folder, "tokens.csv");
  const rows = Object.entries(tokens).map(([user, secret]) => {
    const { name, group } = users[user as User];
    return `${secret},${name},${name},${group}\n`;
  });
  writeFileSync(tokenFile, rows.join(""), { mode: 0o600 });
  const accountKey = join(folder, "service-accounts.key");
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  writeFileSync(accountKey, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  return { tokens, tokenFile, accountKey };
}

/** Writes a kubeconfig of one user and returns its path. */
export function writeKubeconfig(folder: string, user: User, url: string, ca: string, token: string): string {
  const { name } = users[user];
  const path = join(folder, user === "admin" ? "kubeconfig" : `${name}.kubeconfig`);
  const cluster = { server: url, "certificate-authority-data": Buffer.from(ca).toString("base64") };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "real", cluster }],
    users: [{ name, user: { token } }],
    contexts: [{ name: "real", context: { cluster: "real", user: name, namespace: "default" } }],
    "current-context": "real",
  };
  writeFileSync(path, stringify(config), { mode: 0o600 });
  return path;
}
