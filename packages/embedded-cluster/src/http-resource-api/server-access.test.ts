import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { readKubeconfig } from "./server-access.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-access-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function kubeconfig(cluster: object, user: object, current = "one"): Promise<string> {
  const path = join(folder, "kubeconfig");
  const contexts = [{ name: "one", context: { cluster: "c", user: "u" } }];
  const config = {
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    contexts,
    "current-context": current,
  };
  await writeFile(path, stringify(config));
  return path;
}

const server = "https://127.0.0.1:6443";
const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("a kubeconfig", () => {
  it("is read with a token, and authority and certificate as data or files beside it", async () => {
    const inline = { "client-certificate-data": base64("cert"), "client-key-data": base64("key") };
    expect(
      readKubeconfig(
        await kubeconfig({ server, "certificate-authority-data": base64("ca") }, { token: "t", ...inline }),
      ),
    ).toEqual({ url: server, ca: "ca", token: "t", clientCertificate: { cert: "cert", key: "key" } });
    await writeFile(join(folder, "ca.crt"), "ca of a file");
    await writeFile(join(folder, "token"), "token of a file\n");
    const files = await kubeconfig({ server, "certificate-authority": "ca.crt" }, { tokenFile: join(folder, "token") });
    expect(readKubeconfig(files)).toEqual({
      url: server,
      ca: "ca of a file",
      token: "token of a file",
      clientCertificate: undefined,
    });
  });

  it.each([
    ["a plugin", { server }, { exec: { command: "x" } }, /"exec"/],
    ["a password", { server }, { username: "x", password: "y" }, /"username"/],
    ["an unverified server", { server, "insecure-skip-tls-verify": true }, {}, /unverified/],
    ["no server", {}, {}, /names no server/],
  ])("that asks for %s is refused by name", async (_, cluster, user, why) => {
    const path = await kubeconfig(cluster, user);
    expect(() => readKubeconfig(path)).toThrow(why);
  });

  it("whose context is not there is refused by name", async () => {
    const path = await kubeconfig({ server }, {}, "two");
    expect(() => readKubeconfig(path)).toThrow(/no context named "two"/);
  });
});
