import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { Writable } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { ContainerProcess } from "./container-process.ts";

it("a container or probe for which there is no file descriptor fails alone, and the node lives on", () => {
  const script = join(import.meta.dirname, "testing/without-descriptors.ts");
  const argv = ["-c", 'ulimit -n 64 && exec "$0" --disable-warning=ExperimentalWarning "$1"', process.execPath, script];
  const { exit, probed } = JSON.parse(execFileSync("sh", argv, { encoding: "utf8" }));
  expect(exit).toEqual({ code: 127, started: false, complaint: expect.stringContaining("EMFILE") });
  expect(probed).toEqual({ ok: false, message: expect.stringContaining("EMFILE") });
});

it("keeps no pipe of a container that ended, though something of it still holds the other end", async () => {
  const pipes = () => process.getActiveResourcesInfo().filter((kind) => kind === "PipeWrap").length;
  const before = pipes();
  const script = join(import.meta.dirname, "scripts", "pod-init.sh");
  const line = "setsid sleep 1000 & echo $!";
  let said = "";
  const output = new Writable({
    write(chunk, _, done) {
      said += chunk;
      done();
    },
  });
  const run = new ContainerProcess({
    file: "/bin/sh",
    args: [script, "/bin/sh", "-c", line],
    env: { PATH: process.env.PATH ?? "" },
    endSurvivors: async () => undefined,
    output,
    beforeStart: async () => undefined,
  });
  expect(await run.ended).toMatchObject({ code: 0, started: true });
  output.end(); // as its pod does
  onTestFinished(() => void process.kill(Number(said), "SIGKILL"));
  await expect.poll(pipes, { timeout: 3_000 }).toBe(before);
});
