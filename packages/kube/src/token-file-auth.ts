import { readFile } from "node:fs/promises";
import type { KubeConfig, User } from "@kubernetes/client-node";

type Authenticator = Parameters<KubeConfig["addAuthenticator"]>[0];

/** Names our authenticator in a user's auth provider. */
export const tokenFileProvider = "holdfast-token-file";

/** Reads the bearer token from its file for every request, so that a rotated one is used at once. */
export class TokenFileAuth implements Authenticator {
  isAuthProvider(user: User): boolean {
    return user.authProvider?.name === tokenFileProvider;
  }

  async applyAuthentication(user: User, options: Parameters<Authenticator["applyAuthentication"]>[1]): Promise<void> {
    const path: unknown = user.authProvider?.config?.path;
    if (typeof path !== "string") throw new Error("the token file is not configured");
    const token = (await readFile(path, "utf8")).trim();
    if (token === "") throw new Error(`the token file ${path} is empty`);
    options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
  }
}
