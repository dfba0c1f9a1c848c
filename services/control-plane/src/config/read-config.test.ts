import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { StartFailure } from "../start-failure.ts";
import { settings, variableOf } from "./options.ts";
import { readConfig } from "./read-config.ts";

const configOf = (argv: readonly string[], env: NodeJS.ProcessEnv = {}) => {
  const asked = readConfig(argv, env, "/agent");
  if (asked.t !== "run") throw new Error("printed instead");
  return asked.config;
};
const failureOf = (argv: readonly string[], env: NodeJS.ProcessEnv = {}): string => {
  try {
    readConfig(argv, env, "/agent");
  } catch (error) {
    if (error instanceof StartFailure) return error.message;
    throw error;
  }
  throw new Error("did not fail");
};

describe("configuration", () => {
  it("serves an embedded cluster with its relaxations when nothing is said", () => {
    expect(configOf([])).toEqual({
      mode: "serve",
      listen: { host: "127.0.0.1", port: 50051 },
      web: { listen: { host: "127.0.0.1", port: 8080 }, allowHosts: [], allowOrigins: [] },
      dataDir: resolve(".holdfast"),
      cluster: "embedded",
      kubeconfig: undefined,
      namespace: undefined,
      template: "default",
      disk: "filesystem",
      probe: undefined,
      ingress: "unverified",
      agentAddress: "pod-ip",
      agentDir: "/agent",
      allowFaults: false,
      logLevel: "info",
    });
  });

  it("relaxes nothing on a real cluster", () => {
    expect(configOf(["--cluster", "kubernetes"])).toMatchObject({
      disk: "block",
      probe: "refuse",
      ingress: "verify",
      template: undefined,
    });
  });

  it("knows the mode, before or after the flags", () => {
    expect(configOf(["cluster", "--data-dir", "/x"])).toMatchObject({ mode: "cluster", dataDir: "/x" });
    expect(configOf(["--data-dir=/x", "cluster"])).toMatchObject({ mode: "cluster", dataDir: "/x" });
  });

  it("prefers the flag to its variable, and takes an empty variable as unset", () => {
    expect(configOf(["--listen", "[::1]:1"], { HOLDFAST_LISTEN: "127.0.0.1:2" }).listen).toEqual({
      host: "::1",
      port: 1,
    });
    expect(configOf([], { HOLDFAST_LISTEN: "127.0.0.2:2" }).listen).toEqual({ host: "127.0.0.2", port: 2 });
    expect(configOf([], { HOLDFAST_LISTEN: "" }).listen.port).toBe(50051);
  });

  it("reads every flag's variable, and names the variable that is wrong", () => {
    for (const { name } of settings) {
      const variable = variableOf(name);
      if (name === "data-dir" || name === "kubeconfig" || name === "agent-dir") continue; // any text is a path
      expect(failureOf([], { [variable]: "no such !" })).toMatch(
        new RegExp(`^${variable} must be .*; it is "no such !"$`),
      );
    }
  });

  it.each([
    [["--disk", "tape"], '--disk must be one of block, filesystem; it is "tape"'],
    [["--listen", "localhost"], "--listen must be host:port"],
    [["--listen", "localhost:65536"], "--listen must be host:port"],
    [["--listen", "[not]:1"], "--listen must be host:port"],
    [["--web-listen", "localhost"], "--web-listen must be host:port"],
    [["--web-allow-host", "a.example:80"], "--web-allow-host must be host names"],
    [["--web-allow-host", "a.example,"], "--web-allow-host must be host names"],
    [["--web-allow-origin", "*"], "--web-allow-origin must be exact origins"],
    [["--web-allow-origin", "https://*.example"], "--web-allow-origin must be exact origins"],
    [["--web-allow-origin", "https://a.example/"], "--web-allow-origin must be exact origins"],
    [["--namespace", "A_b"], "--namespace must be a Kubernetes name"],
    [["--nosuch"], "unknown option '--nosuch'"],
    [["--listen"], "option '--listen <host:port>' argument missing"],
    [["elsewhere"], '"elsewhere" is no mode'],
    [["serve", "more"], "too many arguments"],
    [["--listen", "--insecure"], "--listen needs a value; --insecure follows it"],
    [["--data-dir", "--cluster", "kubernetes"], "--data-dir needs a value; --cluster follows it"],
    [["--listen", "127.0.0.1:-1"], "--listen must be host:port"],
    [["--listen", "127.0.0.1:NaN"], "--listen must be host:port"],
    [["--insecure=maybe"], "'--insecure=maybe'"],
    [["--data-dir", ""], "--data-dir must be a path"],
    [["cluster", "--namespace", "foo"], "--namespace would do nothing: the embedded cluster alone takes --data-dir"],
    [["--listen", "127.0.0.1:1", "cluster", "--insecure"], "--listen, --insecure would do nothing"],
    [["cluster", "--cluster", "kubernetes"], "--cluster would do nothing"],
    [["--cluster", "kubernetes", "--data-dir", "/d"], "--data-dir is for the embedded cluster"],
    [["--cluster", "kubernetes", "--agent-dir", "/d"], "--agent-dir is for the embedded cluster"],
    [["--kubeconfig", "/k"], "--kubeconfig is for --cluster kubernetes"],
    [["--cluster", "kubernetes", "--allow-faults"], "--allow-faults is for the embedded cluster"],
  ])("refuses %j in one line", (argv, line) => {
    expect(failureOf(argv)).toContain(line);
    expect(failureOf(argv)).not.toContain("\n");
  });

  it("gives the embedded cluster alone what it takes, and leaves it be with variables that are a service's", () => {
    const argv = ["cluster", "--data-dir", "/d", "--agent-dir", "/a", "--allow-faults", "--log-level", "warn"];
    expect(configOf([...argv, "--probe", "report", "--template", "t"])).toMatchObject({
      mode: "cluster",
      dataDir: "/d",
      agentDir: "/a",
      allowFaults: true,
      probe: "report",
      template: "t",
    });
    const env = { HOLDFAST_LISTEN: "0.0.0.0:1", HOLDFAST_CLUSTER: "kubernetes", HOLDFAST_NAMESPACE: "foo" };
    expect(configOf(["cluster"], env)).toMatchObject({ cluster: "embedded", namespace: undefined });
    expect(configOf(["--cluster", "kubernetes"], { HOLDFAST_DATA_DIR: "/d" }).cluster).toBe("kubernetes");
  });

  it("refuses a listener that others can reach, unless --insecure says so", () => {
    for (const address of ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.com:1", "127.example.com:1"]) {
      expect(failureOf(["--listen", address])).toContain("--insecure");
      expect(configOf(["--listen", address, "--insecure"]).listen.port).toBe(1);
      expect(configOf(["--listen", address], { HOLDFAST_INSECURE: "true" }).listen.port).toBe(1);
      expect(failureOf(["--listen", address], { HOLDFAST_INSECURE: "false" })).toContain("--insecure");
    }
  });

  it("has no web listener when it is off, and the same rule for one that others can reach", () => {
    expect(configOf(["--web-listen", "off"]).web).toBeUndefined();
    expect(configOf([], { HOLDFAST_WEB_LISTEN: "off" }).web).toBeUndefined();
    expect(failureOf(["--web-listen", "0.0.0.0:1"])).toMatch(/^--web-listen 0\.0\.0\.0:1 .*--insecure/);
    expect(configOf(["--web-listen", "0.0.0.0:1", "--insecure"]).web?.listen.host).toBe("0.0.0.0");
  });

  it("joins what is said more than once, and comma lists", () => {
    const flags = ["--web-allow-host", "A.example,[::2]", "--web-allow-host", "b.example"];
    expect(configOf(flags).web?.allowHosts).toEqual(["a.example", "[::2]", "b.example"]);
    const env = { HOLDFAST_WEB_ALLOW_ORIGIN: "https://a.example, http://localhost:3000" };
    expect(configOf([], env).web?.allowOrigins).toEqual(["https://a.example", "http://localhost:3000"]);
    expect(configOf(["--web-allow-origin", "https://b.example"], env).web?.allowOrigins).toEqual(["https://b.example"]);
  });

  it("prints help that lists every flag, and the version", () => {
    const help = readConfig(["--help"], {}, "/agent");
    for (const { name } of settings) expect(help.t === "print" && help.text).toContain(`--${name}`);
    expect(readConfig(["--version"], {}, "/agent")).toEqual({ t: "print", text: "0.1.0\n" });
  });
});
