import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  openTestServer,
  podObject,
  podsPath,
  sandboxesPath,
  sandboxObject,
  type TestServer,
  withDefaultNamespace,
} from "./testing/test-server.ts";

const mergePatch = { "content-type": "application/merge-patch+json" };

const readyStatus = (status: string, reason: string) => ({
  status: { conditions: [{ type: "Ready", status, reason, message: "", lastTransitionTime: "2030-01-01T00:00:00Z" }] },
});

const run = promisify(execFile);
const isThere = (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, "kubectl")));
const title = isThere ? "kubectl" : "kubectl (skipped: there is none on PATH)";

describe.skipIf(!isThere)(title, () => {
  let test: TestServer;
  beforeAll(async () => {
    test = await withDefaultNamespace(await openTestServer());
    await test.call("POST", sandboxesPath, sandboxObject("a"));
    await test.call("POST", podsPath, podObject("a"));
  });
  afterAll(() => test.close());

  const kubectl = async (...args: string[]): Promise<string> => {
    const all = ["--kubeconfig", test.server.kubeconfigPath, "--request-timeout=10s", ...args];
    const cacheDir = join(test.dataDir, "kubectl-cache");
    const { stdout } = await run("kubectl", ["--cache-dir", cacheDir, ...all], { timeout: 20_000 });
    return stdout;
  };

  it("gets by short and long names, in all namespaces and by selector", async () => {
    expect(await kubectl("get", "sandbox", "a", "-o", "jsonpath={.spec.operatingMode}")).toBe("Running");
    expect(await kubectl("get", "po", "-A", "-o", "name")).toBe("pod/a\n");
    expect(await kubectl("get", "po", "-l", "x=y", "-o", "name")).toBe("");
    expect(
      await kubectl("get", "sandboxes,pods,svc,pvc,events,secrets,netpol,sandboxtemplates", "-o", "name"),
    ).toContain("pod/a");
  });

  it("prints the columns that people look for", async () => {
    await test.call("PATCH", `${sandboxesPath}/a/status`, readyStatus("True", "DependenciesReady"), mergePatch);
    const columns = async (...args: string[]) =>
      (await kubectl("get", ...args))
        .trimEnd()
        .split("\n")
        .map((line) =>
          line
            .split(/\s{2,}/u)
            .slice(0, 4)
            .join("|"),
        );
    expect(await columns("sandboxes", "--field-selector=metadata.name=a")).toEqual([
      "NAME|READY|REASON|AGE",
      expect.stringMatching(/^a\|True\|DependenciesReady\|\d+s$/u),
    ]);
    expect(await columns("pod", "a", "-o", "wide")).toEqual(["NAME|READY|STATUS|RESTARTS", "a|0/1|Pending|0"]);
    expect(await columns("pvc")).toEqual([""]);
    expect(await columns("ns")).toEqual(["NAME|STATUS|AGE", expect.stringMatching(/^default\|Active\|\d+s$/u)]);
  });

  it("follows with -w", async () => {
    const args = ["--kubeconfig", test.server.kubeconfigPath, "get", "sandbox", "a", "-w"];
    const watching = spawn("kubectl", args, { stdio: ["ignore", "pipe", "inherit"] });
    try {
      const lines = createInterface({ input: watching.stdout })[Symbol.asyncIterator]();
      const next = async () => (await lines.next()).value;
      expect([await next(), await next()]).toEqual([
        expect.stringContaining("REASON"),
        expect.stringContaining("DependenciesReady"),
      ]);
      await test.call("PATCH", `${sandboxesPath}/a/status`, readyStatus("False", "SandboxSuspended"), mergePatch);
      expect(await next()).toContain("SandboxSuspended");
    } finally {
      watching.kill();
    }
  });

  it("describes", async () => {
    const text = await kubectl("describe", "sandbox", "a");
    expect(text).toContain("Operating Mode:  Running");
    expect(text).toContain("Events:");
    expect(await kubectl("describe", "pod", "a")).toContain("Status:");
  });

  it("patches by merge and by JSON Patch, and words a failed test as the real server does", async () => {
    const suspend = '{"spec":{"operatingMode":"Suspended"}}';
    expect(await kubectl("patch", "sandbox", "a", "--type=merge", "-p", suspend)).toContain("patched");
    const test = '[{"op":"test","path":"/metadata/uid","value":"other"}]';
    await expect(kubectl("patch", "sandbox", "a", "--type=json", "-p", test)).rejects.toThrow(
      "The request is invalid: the server rejected our request due to an error in our request",
    );
  });

  it("annotates, labels, waits and deletes", async () => {
    await test.call("POST", podsPath, podObject("short-lived"));
    expect(await kubectl("annotate", "pod", "short-lived", "x=y")).toContain("annotated");
    expect(await kubectl("label", "pod", "short-lived", "x=y")).toContain("labeled");
    expect(await kubectl("delete", "pod", "short-lived")).toContain("deleted");
    expect(await kubectl("get", "pod", "short-lived", "--ignore-not-found")).toBe("");
  });

  it("creates and applies custom resources, and is told of members that nobody knows", async () => {
    const file = join(test.dataDir, "made.json");
    const write = (spec: object) => writeFile(file, JSON.stringify(sandboxObject("made", spec)));
    await write({});
    expect(await kubectl("apply", "-f", file)).toContain("created");
    await write({ operatingMode: "Suspended" });
    expect(await kubectl("apply", "-f", file)).toContain("configured");
    expect(await kubectl("get", "sandbox", "made", "-o", "jsonpath={.spec.operatingMode}")).toBe("Suspended");
    await write({ operatingModus: "Running" });
    await expect(kubectl("apply", "-f", file)).rejects.toThrow(
      'strict decoding error: unknown field "spec.operatingModus"',
    );
  });
});
