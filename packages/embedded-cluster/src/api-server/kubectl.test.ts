import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FaultPlan } from "../faults/fault-plan.ts";
import {
  claimObject,
  claimsPath,
  openTestServer,
  podObject,
  podsPath,
  sandboxesPath,
  sandboxObject,
  secretObject,
  secretsPath,
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
  const faults = new FaultPlan();
  const readLog = async () => Buffer.from("one\ntwo\n");
  beforeAll(async () => {
    test = await withDefaultNamespace(await openTestServer({ faults, readLog }));
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

  it("prints in each of its formats", async () => {
    const get = (...args: string[]) => kubectl("get", "pod", "a", ...args);
    expect(JSON.parse(await get("-o", "json")).metadata.name).toBe("a");
    expect(await get("-o", "yaml")).toContain("\n  name: a\n");
    expect(await get("-o", "custom-columns=N:.metadata.name,P:.status.phase")).toMatch(/^N +P\na +Pending\n$/u);
    expect(await get("-o", "go-template={{.metadata.name}}")).toBe("a");
    expect((await get("-o", "wide")).split(/\s+/u)).toContain("NOMINATED");
    expect(await get("--show-labels", "--no-headers")).toContain("<none>");
    await test.call("POST", podsPath, podObject("b", {}, { labels: { tier: "back" } }));
    const names = (...args: string[]) => kubectl("get", "pods", "-o", "name", ...args);
    expect(await names("--sort-by=.metadata.name")).toBe("pod/a\npod/b\n");
    expect(await names("-l", "tier in (back)")).toBe("pod/b\n");
    expect(await names("--field-selector=metadata.name!=b,status.phase=Pending")).toBe("pod/a\n");
    expect(await names("--chunk-size=1")).toBe("pod/a\npod/b\n");
    expect(await kubectl("get", "all", "-A", "-o", "name")).toBe("pod/a\npod/b\n");
    expect(await kubectl("get", "--raw", "/api/v1/namespaces/default/pods/b")).toContain('"tier":"back"');
  });

  it("describes every kind", async () => {
    await test.call("POST", secretsPath, { ...secretObject("s"), data: { key: "dmFsdWU=" } });
    await test.call("POST", claimsPath, claimObject("c"));
    await test.call("POST", `${claimsPath.replace("persistentvolumeclaims", "services")}`, {
      metadata: { name: "v" },
      spec: { clusterIP: "None", selector: { a: "b" }, ports: [{ port: 80 }] },
    });
    await test.call("POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", {
      metadata: { name: "n" },
      spec: { podSelector: { matchLabels: { a: "b" } }, policyTypes: ["Ingress"] },
    });
    await test.call("POST", "/api/v1/nodes", { metadata: { name: "o" }, status: { conditions: [] } });
    await test.call("POST", "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxtemplates", {
      metadata: { name: "t" },
      spec: { podTemplate: { spec: { containers: [{ name: "agent", image: "x" }] } } },
    });
    expect(await kubectl("describe", "secret", "s")).toContain("key:  5 bytes");
    expect(await kubectl("describe", "pvc", "c")).toContain("Finalizers:    [kubernetes.io/pvc-protection]");
    expect(await kubectl("describe", "svc", "v")).toContain("80/TCP");
    expect(await kubectl("describe", "netpol", "n")).toContain("PodSelector:     a=b");
    expect(await kubectl("describe", "node", "o")).toContain("Unschedulable:      false");
    expect(await kubectl("describe", "sandboxtemplate", "t")).toContain("Kind:         SandboxTemplate");
    expect(await kubectl("describe", "ns", "default")).toContain("Status:       Active");
  });

  it("lists events of an object and describes one", async () => {
    const { uid } = (await test.call("GET", `${podsPath}/a`)).body.metadata;
    await test.call("POST", "/api/v1/namespaces/default/events", {
      metadata: { name: "a.1" },
      involvedObject: { kind: "Pod", namespace: "default", name: "a", apiVersion: "v1", uid },
      reason: "Because",
      message: "it was so",
      type: "Normal",
      firstTimestamp: "2030-01-01T00:00:00Z",
      lastTimestamp: "2030-01-01T00:00:00Z",
      count: 1,
      source: { component: "test" },
    });
    expect(await kubectl("events", "--for", "pod/a")).toMatch(/Normal +Because +Pod\/a +it was so/u);
    expect(await kubectl("get", "events", "-o", "wide")).toMatch(
      /SUBOBJECT +SOURCE +MESSAGE +FIRST SEEN +COUNT +NAME/u,
    );
    expect(await kubectl("describe", "event", "a.1")).toContain("it was so");
    expect(await kubectl("describe", "pod", "a")).toMatch(/Normal +Because +.* +test +it was so/u);
  });

  it("waits for a condition, for a field and for an end", async () => {
    await test.call("POST", sandboxesPath, sandboxObject("awaited"));
    const condition = kubectl("wait", "--for=condition=Ready", "sandbox/awaited", "--timeout=15s");
    await test.call("PATCH", `${sandboxesPath}/awaited/status`, readyStatus("True", "DependenciesReady"), mergePatch);
    expect(await condition).toContain("condition met");
    const field = "--for=jsonpath={.spec.operatingMode}=Running";
    expect(await kubectl("wait", field, "sandbox/awaited", "--timeout=15s")).toContain("condition met");
    const watches = faults.record({ verb: "watch", resource: "sandboxes" });
    const end = kubectl("wait", "--for=delete", "sandbox/awaited", "--timeout=15s");
    await expect.poll(() => watches.requests).toHaveLength(1);
    await test.call("DELETE", `${sandboxesPath}/awaited`);
    expect(await end).toContain("condition met");
    const never = kubectl("wait", "--for=condition=Never", "sandbox/a", "--timeout=1s");
    await expect(never).rejects.toThrow("timed out waiting for the condition");
  });

  it("deletes in each of its ways", async () => {
    const owned = async (name: string) => {
      const { body: owner } = await test.call("POST", sandboxesPath, sandboxObject(name));
      const { apiVersion, kind, metadata } = owner;
      const ownerReferences = [{ apiVersion, kind, name, uid: metadata.uid, blockOwnerDeletion: true }];
      await test.call("POST", podsPath, podObject(`${name}-pod`, {}, { ownerReferences }));
    };
    const podOf = (name: string) => test.call("GET", `${podsPath}/${name}-pod`);
    for (const cascade of ["background", "foreground", "orphan"]) {
      await owned(cascade);
      expect(await kubectl("delete", "sandbox", cascade, `--cascade=${cascade}`)).toContain("deleted");
      if (cascade !== "orphan") await expect.poll(async () => (await podOf(cascade)).code).toBe(404);
      else await expect.poll(async () => (await podOf(cascade)).body.metadata.ownerReferences).toBeUndefined();
    }
    const bound = (name: string) => test.call("POST", podsPath, podObject(name, { nodeName: "n" }));
    await bound("slow");
    expect(await kubectl("delete", "pod", "slow", "--grace-period=7", "--wait=false")).toContain("deleted");
    expect((await test.call("GET", `${podsPath}/slow`)).body.metadata.deletionGracePeriodSeconds).toBe(7);
    expect(await kubectl("delete", "pod", "slow", "--force")).toContain("force deleted");
    expect((await test.call("GET", `${podsPath}/slow`)).code).toBe(404);
    await bound("now");
    expect(await kubectl("delete", "pod", "now", "--now", "--wait=false")).toContain("deleted");
    expect((await test.call("GET", `${podsPath}/now`)).body.metadata.deletionGracePeriodSeconds).toBe(1);
    expect(await kubectl("delete", "pods", "--all", "--force", "--dry-run=server")).toContain("(server dry run)");
    expect((await test.call("GET", `${podsPath}/now`)).code).toBe(200);
    expect(await kubectl("delete", "pods", "--all", "--force")).toContain('"now" force deleted');
    await test.call("POST", podsPath, podObject("a"));
  });

  it("makes built-in kinds from files and by its own means, and warns where nothing was checked", async () => {
    const file = join(test.dataDir, "pod.json");
    await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "Pod", ...podObject("from-file") }));
    expect(await kubectl("apply", "-f", file)).toContain("pod/from-file created");
    expect(await kubectl("apply", "-f", file)).toContain("pod/from-file unchanged");
    expect(await kubectl("create", "namespace", "made")).toContain("namespace/made created");
    expect(await kubectl("create", "secret", "generic", "made", "--from-literal=a=b")).toContain("secret/made created");
    expect(await kubectl("get", "secret", "made", "-o", "jsonpath={.type} {.data.a}")).toBe("Opaque Yg==");
    const dry = await kubectl("create", "secret", "generic", "tried", "--from-literal=a=b", "--dry-run=server");
    expect(dry).toContain("(server dry run)");
    expect((await test.call("GET", `${secretsPath}/tried`)).code).toBe(404);
    expect(await kubectl("delete", "namespace", "made")).toContain("deleted");
  });

  it("knows what there is and what one may do", async () => {
    expect(await kubectl("version")).toMatch(/Server Version: v1\.36\.\d+\+holdfast-embedded/u);
    expect(await kubectl("api-resources", "--no-headers", "-o", "name")).toContain("sandboxes.agents.x-k8s.io");
    expect(await kubectl("auth", "can-i", "create", "pods")).toBe("yes\n");
    expect(await kubectl("auth", "can-i", "--list")).toContain("*.*");
    expect(await kubectl("auth", "whoami")).toContain("holdfast-embedded");
    expect(await kubectl("explain", "sandbox.spec")).toContain("operatingMode");
  });

  it("shows what a container has printed", async () => {
    expect(await kubectl("logs", "a")).toBe("one\ntwo\n");
    expect(await kubectl("logs", "pod/a", "-c", "agent", "--tail=1")).toBe("two\n");
  });

  it.each([
    ["following logs", ["logs", "-f", "a"], "follow of a log is not served"],
    ["exec", ["exec", "a", "--", "ls"], "pods/a/exec is not served"],
    ["port-forward", ["port-forward", "pod/a", "1:1"], "pod is not running"],
    ["explain of a built-in kind", ["explain", "pod"], "not found in OpenAPI schema"],
    [
      "a patch by strategic merge",
      ["patch", "pod", "a", "-p", '{"metadata":{"labels":{"x":"y"}}}'],
      "strategic merge patch is not served",
    ],
    ["server-side apply", ["apply", "--server-side", "-f", "-"], "Server-side apply not available"],
    ["a kind that is not served", ["create", "configmap", "x"], "configmaps is not served"],
    ["protobuf of other kinds", ["create", "service", "clusterip", "x", "--tcp=80"], "reads no protobuf of Service"],
    ["scale", ["scale", "sandbox", "a", "--replicas=2"], "sandboxes/a/scale is not served"],
  ])("refuses %s by name", async (_what, args, message) => {
    const running = run("kubectl", ["--kubeconfig", test.server.kubeconfigPath, "--request-timeout=10s", ...args]);
    running.child.stdin?.end(JSON.stringify(sandboxObject("applied")));
    await expect(running).rejects.toThrow(message);
  });
});
