import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connectKube } from "./connect-kube.ts";
import { KubeConfigError, kubeConfigFrom } from "./kube-config.ts";
import { LogRecord, sandboxJson, soon } from "./testing/fixtures.ts";
import { json, kubeconfigText, ScriptedApi } from "./testing/scripted-api.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-kubeconfig-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  vi.unstubAllEnvs();
});

const written = (text: string): string => {
  const path = join(folder, "kubeconfig");
  writeFileSync(path, text);
  return path;
};
const changed = (change: (config: Record<string, never[]>) => void): string => {
  const config = JSON.parse(kubeconfigText("http://127.0.0.1:1"));
  change(config);
  return written(JSON.stringify(config));
};

describe("a kubeconfig", () => {
  it("that does not exist is named in the error", () => {
    const path = join(folder, "nowhere");
    expect(() => kubeConfigFrom({ kubeconfigPath: path })).toThrow(
      new RegExp(`The kubeconfig ${path} cannot be read: .*ENOENT`),
    );
  });

  it.each([
    ["is empty", ""],
    ["is no YAML", "a: ["],
    ["is a text", "hello"],
    ["is a list", "[]"],
    ["has an odd cluster", JSON.stringify({ clusters: [{ name: "a" }] })],
    ["has an odd user", JSON.stringify({ users: [7] })],
  ])("that %s is refused with its path", (_what, text) => {
    const path = written(text);
    expect(() => kubeConfigFrom({ kubeconfigPath: path })).toThrow(KubeConfigError);
    expect(() => kubeConfigFrom({ kubeconfigPath: path })).toThrow(path);
  });

  it("whose current context does not exist is refused with the contexts that do", () => {
    const path = changed((config) => Object.assign(config, { "current-context": "gone" }));
    expect(() => kubeConfigFrom({ kubeconfigPath: path })).toThrow(/current-context is "gone".*\["scripted"\]/);
  });

  it.each(["ftp://x", "nonsense", "127.0.0.1:6443"])("whose server is %s is refused", (server) => {
    const path = written(kubeconfigText(server));
    expect(() => kubeConfigFrom({ kubeconfigPath: path })).toThrow(/not an http or https address/);
  });

  it("does not send a token over plain http unless it says so", () => {
    const path = changed((config) => {
      config.clusters = [{ name: "scripted", cluster: { server: "http://127.0.0.1:1" } } as never];
    });
    expect(() => kubeConfigFrom({ kubeconfigPath: path })).toThrow(/insecure-skip-tls-verify/);
  });

  it("that names a file which cannot be read says which", () => {
    const path = changed((config) => {
      const cluster = { server: "https://127.0.0.1:1", "certificate-authority": "ca.pem" };
      config.clusters = [{ name: "scripted", cluster } as never];
    });
    expect(() => kubeConfigFrom({ kubeconfigPath: path })).toThrow(join(folder, "ca.pem"));
  });

  it("is found by KUBECONFIG when no path is given, and localhost is never guessed", () => {
    vi.stubEnv("KUBECONFIG", written(kubeconfigText("http://127.0.0.1:1")));
    expect(kubeConfigFrom({}).getCurrentCluster()?.server).toBe("http://127.0.0.1:1");
    vi.stubEnv("KUBECONFIG", "");
    vi.stubEnv("HOME", folder);
    expect(() => kubeConfigFrom({})).toThrow(KubeConfigError);
  });

  it("with a tokenFile: the file's token is read for every request", async () => {
    await using api = await ScriptedApi.start((_received, reply) => json(reply, 200, sandboxJson()));
    const config = JSON.parse(kubeconfigText(api.address));
    config.users[0].user = { tokenFile: "token" };
    const access = { kubeconfigPath: written(JSON.stringify(config)) };
    const cluster = await connectKube({ access, disk: "block", log: new LogRecord() });
    using within = soon();
    for (const token of ["first", "second"]) {
      writeFileSync(join(folder, "token"), `${token}\n`);
      await cluster.readSandbox("namzu-ws-one", within);
    }
    await cluster.close();
    expect(api.received.map(({ headers }) => headers.authorization)).toEqual(["Bearer first", "Bearer second"]);
  });

  it("with a tokenFile that is empty: nothing is sent without a token, and the file is named", async () => {
    await using api = await ScriptedApi.start();
    const config = JSON.parse(kubeconfigText(api.address));
    config.users[0].user = { tokenFile: "token" };
    writeFileSync(join(folder, "token"), "\n");
    const access = { kubeconfigPath: written(JSON.stringify(config)) };
    const cluster = await connectKube({ access, disk: "block", log: new LogRecord() });
    using within = soon();
    const wish = { name: "namzu-ws-one", uid: "u" as never, resourceVersion: "1" };
    const ending = await cluster.deleteSandbox(wish, within);
    expect(ending).toMatchObject({ t: "refused", why: "other" });
    expect(ending).toHaveProperty("error.message", expect.stringContaining(`${join(folder, "token")} is empty`));
    await cluster.close();
    expect(api.received).toEqual([]);
  });

  it("with a credential plugin that hangs: nothing is sent, and a write is refused at the time of a request", async () => {
    await using api = await ScriptedApi.start();
    const config = JSON.parse(kubeconfigText(api.address));
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "sleep", args: ["5"] };
    config.users[0].user = { exec };
    const access = { kubeconfigPath: written(JSON.stringify(config)) };
    const cluster = await connectKube({ access, disk: "block", log: new LogRecord(), requestTimeoutMs: 50 });
    using within = soon();
    const wish = { name: "namzu-ws-one", uid: "u" as never, resourceVersion: "1" };
    expect(await cluster.deleteSandbox(wish, within)).toMatchObject({ t: "refused", why: "other" });
    expect(within.remainingMs()).toBeGreaterThan(5_000); // The plugin was not waited for.
    await cluster.close();
    expect(api.received).toEqual([]);
  });
});

describe("in a cluster", () => {
  it("says which variable is missing", () => {
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "");
    expect(() => kubeConfigFrom({ inCluster: true })).toThrow(/KUBERNETES_SERVICE_HOST is not set/);
  });

  it("says which file of the service account is missing", () => {
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", "443");
    expect(() => kubeConfigFrom({ inCluster: true })).toThrow(/serviceaccount\/ca\.crt/);
  });
});
