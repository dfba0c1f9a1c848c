import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";

it("a container or probe for which there is no file descriptor fails alone, and the node lives on", () => {
  const script = join(import.meta.dirname, "testing/without-descriptors.ts");
  const argv = ["-c", 'ulimit -n 64 && exec "$0" --disable-warning=ExperimentalWarning "$1"', process.execPath, script];
  const { exit, probed } = JSON.parse(execFileSync("sh", argv, { encoding: "utf8" }));
  expect(exit).toEqual({ code: 127, started: false, complaint: expect.stringContaining("EMFILE") });
  expect(probed).toEqual({ ok: false, message: expect.stringContaining("EMFILE") });
});
