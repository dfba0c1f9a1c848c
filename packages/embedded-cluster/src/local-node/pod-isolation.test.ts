import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../resource-api.ts";
import { agentPod, evalIn, podWithDisk } from "./testing/cluster.ts";
import { HostProcess } from "./testing/host-process.ts";

const isRoot = process.geteuid?.() === 0;
const asNobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

describe.each([
  ["namespaces", [] as readonly string[]],
  ["user-namespaces", asNobody],
] as const)("a pod in %s", (isolation, launcher) => {
  let dataDir: string;
  let host: HostProcess;
  let pod: KubeObject;
  let available = false;

  // Both need root: the first by itself, the second to become another user.
  beforeAll(async () => {
    if (!isRoot) return;
    dataDir = await mkdtemp(join(tmpdir(), "holdfast-isolation-"));
    if (launcher.length > 0) await chown(dataDir, 65534, 65534);
    await chmod(dataDir, 0o700);
    host = await HostProcess.start(dataDir, launcher);
    available = (await host.call("describe")).isolation === isolation; // a kernel may refuse user namespaces
    await host.call("createClaim", "disk");
    const probe = {
      exec: { command: ["sh", "-c", 'test "$(id -u)" = 1001 && test -e $HOME/listening'] },
      periodSeconds: 1,
      failureThreshold: 100,
    };
    await host.call("createPod", podWithDisk("seen", "disk", { readinessProbe: probe }));
    pod = await host.call("awaitReady", "seen");
  });
  afterAll(async () => {
    if (!isRoot) return;
    await host.call("stop");
    await host.kill();
    await rm(dataDir, { recursive: true, force: true });
  });

  const seen = (promise: string, body: () => Promise<void>) =>
    it.skipIf(!isRoot)(`${promise} (needs root to set up)`, async (context) => {
      context.skip(!available, `this kernel does not allow ${isolation}`);
      await body();
    });

  seen("has no capability, in none of the five sets, and can gain none", async () => {
    const status = await evalIn(pod, 'return fs.readFileSync("/proc/self/status", "utf8")');
    for (const set of ["Inh", "Prm", "Eff", "Bnd", "Amb"]) expect(status).toMatch(new RegExp(`Cap${set}:\\t0{16}\\n`));
    expect(status).toMatch(/NoNewPrivs:\t1\n/);
    expect(status).toMatch(/Uid:\t1001\t1001\t1001\t1001\n/);
    expect(status).toMatch(/Gid:\t1001\t1001\t1001\t1001\n/);
    expect(await evalIn(pod, 'return fs.readFileSync("/proc/1/status", "utf8")')).toMatch(/CapBnd:\t0{16}\n/);
  });

  seen("sees only its own processes, and PID 1 reaps", async () => {
    const orphans =
      'sh("(sleep 0.05 &) >/dev/null 2>&1; (sleep 0.05 &) >/dev/null 2>&1; sleep 0.3"); return sh("ps axo pid,stat,args")';
    const list = await evalIn(pod, orphans);
    expect(list).toContain("pod-init.sh");
    expect(list).not.toContain("defunct");
    expect(String(list).trim().split("\n").length).toBeLessThan(8);
  });

  seen("does not see the data directory, nor anything of the host but system folders", async () => {
    expect(await evalIn(pod, `return fs.existsSync(${JSON.stringify(dataDir)})`)).toBe(false);
    const root = await evalIn(pod, 'return fs.readdirSync("/").filter((name) => !name.startsWith("lib")).sort()');
    const system = [
      ".host",
      "bin",
      "dev",
      "etc",
      "home",
      "opt",
      "proc",
      "run",
      "sbin",
      "tmp",
      "usr",
      "var",
      "workspace",
    ];
    expect(root).toEqual(system);
    expect(await evalIn(pod, 'return fs.readdirSync("/.host")')).toEqual([]);
    expect(await evalIn(pod, 'return sh("ls /home; ls /tmp")')).toBe("agent\n");
  });

  seen("cannot write to what is the host's", async () => {
    for (const path of ["/x", "/usr/x", "/etc/x", "/opt/holdfast/agent/x", "/opt/holdfast/pod/x", "/dev/pts/x"]) {
      await expect(evalIn(pod, `fs.writeFileSync(${JSON.stringify(path)}, "")`)).rejects.toThrow(/EROFS|EACCES/);
    }
    await expect(evalIn(pod, 'fs.appendFileSync("/opt/holdfast/node", "x")')).rejects.toThrow(/EROFS|EACCES|ETXTBSY/);
    await expect(evalIn(pod, 'return sh("mount -t tmpfs tmpfs /tmp 2>&1")')).rejects.toThrow();
  });

  seen("can write to its disk, HOME, /tmp and /dev/shm", async () => {
    for (const folder of ["/workspace", "/home/agent", "/tmp", "/dev/shm", "/var/tmp"])
      expect(await evalIn(pod, `fs.writeFileSync("${folder}/x", "1"); return fs.statSync("${folder}/x").uid`)).toBe(
        1001,
      );
  });

  seen("is the user agent with a home", async () => {
    const user = '(await import("node:os")).userInfo()';
    expect(await evalIn(pod, `return [sh("id -un; id -gn"), ${user}]`)).toEqual([
      "agent\nagent\n",
      expect.objectContaining({ username: "agent", uid: 1001, gid: 1001, homedir: "/home/agent" }),
    ]);
  });

  seen("has a terminal and the usual devices", async () => {
    const line = `script -qec 'tty; test -c /dev/tty && stty size >/dev/null && echo terminal' /dev/null </dev/null`;
    expect(await evalIn(pod, `return sh(${JSON.stringify(line)})`)).toMatch(/\/dev\/pts\/0\r\nterminal\r\n/);
    const devices =
      "head -c 4 /dev/zero | wc -c; echo x >/dev/null; head -c 4 /dev/urandom | wc -c; echo out >/dev/stdout";
    expect(await evalIn(pod, `return sh(${JSON.stringify(`(${devices}) | cat`)})`)).toBe("4\n4\nout\n");
    await expect(evalIn(pod, 'return sh("echo x >/dev/full")')).rejects.toThrow();
  });

  seen("gives its disk to the pod that follows it, with what was written", async () => {
    await evalIn(pod, 'fs.writeFileSync("/workspace/kept", "bytes"); sh("chmod 600 /workspace/kept")');
    await host.call("deletePod", pod);
    await host.call("awaitGone", "seen");
    await host.call("createPod", podWithDisk("seen", "disk"));
    const next = await host.call("awaitReady", "seen");
    expect(next.metadata.uid).not.toBe(pod.metadata.uid);
    expect(await evalIn(next, 'return fs.readFileSync("/workspace/kept", "utf8")')).toBe("bytes");
    pod = next;
  });

  seen("does not reach another pod's processes or files", async () => {
    await host.call("createPod", agentPod("other"));
    const other = await host.call("awaitReady", "other");
    await evalIn(other, 'fs.writeFileSync("/tmp/secret", "x")');
    expect(await evalIn(pod, 'return fs.existsSync("/tmp/secret")')).toBe(false);
    expect(await evalIn(pod, 'return sh("ps ax")')).not.toContain("other");
    await host.call("deletePod", other);
    await host.call("awaitGone", "other");
  });
});
