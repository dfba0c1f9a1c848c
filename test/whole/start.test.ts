import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { dataFolder, eventually, processesNaming, startService } from "./harness.ts";

const root = dirname(dirname(import.meta.dirname));
const main = join(root, "services/control-plane/src/main.ts");

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line to its end; one that goes on after 20 s is ended and fails the test. */
function run(file: string, argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(file, argv, { cwd: root, timeout: 20_000, env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      resolve({ code: error ? (typeof error.code === "number" ? error.code : -1) : 0, stdout, stderr });
    });
  });
}

const serve = (flags: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  run(process.execPath, ["--disable-warning=ExperimentalWarning", main, "serve", ...flags], {
    HOLDFAST_WEB_LISTEN: "off",
    ...env,
  });

/** One clear line, exit code 2, no stack. */
function expectRefusal(ended: Ended, text: RegExp): void {
  expect(ended.stderr).toMatch(text);
  expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  expect(ended.stderr).not.toMatch(/\n\s+at /);
  expect(ended.code).toBe(2);
}

describe("npm start", () => {
  it("refuses a flag that does not exist, a value that is none, and a bad HOLDFAST_ variable", async () => {
    expectRefusal(await serve(["--lisen", "127.0.0.1:0"]), /--lisen/);
    expectRefusal(await serve(["--cluster", "moon"]), /embedded.*kubernetes.*moon/);
    expectRefusal(await serve(["--listen", "127.0.0.1:99999"]), /99999/);
    expectRefusal(await serve([], { HOLDFAST_DISK: "floppy" }), /floppy/);
  });

  it("refuses a port that is in use", async () => {
    await using folder = await dataFolder();
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const address = taken.address();
    const port = typeof address === "object" && address ? address.port : 0;
    expectRefusal(
      await serve(["--listen", `127.0.0.1:${port}`, "--data-dir", folder.path]),
      new RegExp(`${port}.*in use`),
    );
    expectRefusal(
      await serve(["--listen", "127.0.0.1:0", "--web-listen", `127.0.0.1:${port}`, "--data-dir", folder.path]),
      new RegExp(`${port} \\(--web-listen\\): the port is in use`),
    );
    taken.close();
  });

  it("refuses a listener that is not loopback without --insecure", async () => {
    await using folder = await dataFolder();
    expectRefusal(await serve(["--listen", "0.0.0.0:0", "--data-dir", folder.path]), /--insecure/);
  });

  it("refuses a data directory that it cannot make", async () => {
    expectRefusal(await serve(["--listen", "127.0.0.1:0", "--data-dir", "/proc/holdfast"]), /\/proc\/holdfast/);
  });

  it.skipIf(process.getuid?.() === 0)(
    "refuses a data directory that it may not write (skipped as root, who may)",
    async () => {
      await using folder = await dataFolder();
      const locked = join(folder.path, "locked");
      await mkdir(locked);
      await chmod(locked, 0o500);
      expectRefusal(await serve(["--listen", "127.0.0.1:0", "--data-dir", locked]), /locked/);
    },
  );

  it("refuses a data directory on a disk that is full, and one whose store is none", async () => {
    await using folder = await dataFolder();
    const full = join(folder.path, "full");
    const limited = 'ulimit -f 8; exec "$@"'; // no file may grow past 4 KiB: as a full disk
    const argv = [process.execPath, "--disable-warning=ExperimentalWarning", main, "cluster", "--data-dir", full];
    expectRefusal(await run("sh", ["-c", limited, "sh", ...argv], {}), /data directory .*full.* cannot be used/);
    const spoilt = join(folder.path, "spoilt");
    await mkdir(join(spoilt, "api-server"), { recursive: true });
    await writeFile(join(spoilt, "api-server", "objects.sqlite"), "no database ".repeat(400));
    expectRefusal(await serve(["--listen", "127.0.0.1:0", "--data-dir", spoilt]), /spoilt.* not a database/);
  });

  it("refuses a data directory that another service uses, naming its pid", async () => {
    await using folder = await dataFolder();
    await using first = await startService(folder.path);
    expectRefusal(
      await serve(["--listen", "127.0.0.1:0", "--data-dir", folder.path]),
      new RegExp(String(first.child.pid)),
    );
  });

  it("refuses a kubeconfig that is not there", async () => {
    expectRefusal(
      await serve(["--listen", "127.0.0.1:0", "--cluster", "kubernetes", "--kubeconfig", "/nowhere"]),
      /\/nowhere/,
    );
  });

  it("explains its flags", async () => {
    const help = await serve(["--help"]);
    expect(help.code).toBe(0);
    for (const flag of [
      "--listen",
      "--web-listen",
      "--web-allow-host",
      "--web-allow-origin",
      "--data-dir",
      "--cluster",
      "--kubeconfig",
      "--disk",
      "--probe",
      "--ingress",
      "--log-level",
      "--insecure",
    ]) {
      expect(help.stdout).toContain(flag);
    }
    expect(help.stdout).toContain("HOLDFAST_");
  });

  it("says where it listens, where its data is, what is relaxed, and a call to copy", async () => {
    await using folder = await dataFolder();
    await using service = await startService(folder.path);
    const said = service.lines.join("\n");
    expect(said).toContain(service.target);
    expect(said).toContain(folder.path);
    expect(said).toMatch(/relaxed/i);
    expect(said).toMatch(/grpcurl -plaintext/);
    expect(service.lines.at(-1)).toBe(`holdfast listens on ${service.target}`);
    const curl = /curl -H 'content-type: application\/json' -d '(\S+)' (http:\S+)/.exec(said);
    const answer = await fetch(curl?.[2] ?? "", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: curl?.[1] ?? "",
    });
    expect(await answer.json()).toMatchObject({
      workspace: { workspaceId: "hello", state: "WORKSPACE_STATE_RUNNING" },
    });
  });

  it("ends with the service's own exit code through npm's launcher", async () => {
    // By the Node that npm runs on, so that the install stamp is the one that was written.
    const launched = await run(process.env.npm_node_execpath ?? "node", [
      join(root, "tools/launch.mjs"),
      "start",
      "--cluster",
      "moon",
    ]);
    expectRefusal(launched, /moon/);
  });
});

/** util-linux's `script`: runs a command on a terminal of its own. */
const hasScript = spawnSync("script", ["--version"]).status === 0;

describe("a terminal that is closed", () => {
  it.skipIf(!hasScript)(
    "ends launcher and service, whose log has nowhere to go (skipped without `script`)",
    async () => {
      await using folder = await dataFolder();
      const words = [process.execPath, join(root, "tools/launch.mjs"), "start"];
      words.push("--listen", "127.0.0.1:0", "--web-listen", "off", "--data-dir", folder.path);
      // A shell that waits between the terminal and the launcher, as npm has one.
      const line = `sh -c '${words.join(" ")}; true'`;
      const terminal = spawn("script", ["-qfec", line, "/dev/null"], { stdio: ["ignore", "pipe", "ignore"] });
      let said = "";
      for await (const chunk of terminal.stdout) {
        said += chunk;
        if (said.includes("listens on")) break;
      }
      expect(await processesNaming(folder.path)).not.toEqual([]);
      terminal.kill("SIGKILL");
      await eventually(10_000, async () => ((await processesNaming(folder.path)).length === 0 ? true : undefined));
    },
  );
});

describe("npm run demo", () => {
  it.each([
    ["in one process", []],
    ["with control plane and cluster in separate processes", ["--separate"]],
  ])("holds %s", async (_, flags) => {
    const demo = await run(process.execPath, [
      "--disable-warning=ExperimentalWarning",
      join(root, "tools/demo.ts"),
      ...flags,
    ]);
    expect(demo.stderr).toBe("");
    expect(demo.code).toBe(0);
    expect(demo.stdout).toMatch(/destroy with its disk +\d+ ms/);
  });
});
