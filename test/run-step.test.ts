import { describe, expect, it } from "vitest";
import { runStep } from "../tools/run-step.mjs";

const node = (source: string, tellsVerdict = true) => ({
  file: process.execPath,
  argv: ["-e", source],
  env: process.env,
  tellsVerdict,
});
const hang = "setInterval(() => 0, 1e9);";

describe("a step of a task", () => {
  it.each([
    ["passed", 0],
    ["failed", 1],
  ])("that told its verdict and does not exit is ended, and the verdict stands: %s", async (verdict, code) => {
    expect(await runStep(node(`require("fs").writeSync(3, "${verdict}\\n"); ${hang}`), 50)).toBe(code);
  });

  it("that exits is believed by its exit code, whatever it told before", async () => {
    expect(await runStep(node('require("fs").writeSync(3, "passed\\n"); process.exit(7)'))).toBe(7);
  });

  it("that is killed before it told anything has failed", async () => {
    expect(await runStep(node('process.kill(process.pid, "SIGKILL")'))).toBe(137);
  });

  it("is asked for no verdict unless it tells one", async () => {
    expect(await runStep(node("process.exit(process.env.HOLDFAST_VERDICT_FD ? 8 : 9)", false))).toBe(9);
  });
});
